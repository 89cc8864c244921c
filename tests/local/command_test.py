# SPDX-License-Identifier: Apache-2.0
"""Tests the command itself: every exit status that its help names, output that appears on a
terminal only, lists as JSON, and a trace's description of its origin."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from tests.local.weft_local import EMITTER, PATIENCE, WEFT, LocalTest, children_of, name_of

LIBRARY = WEFT.parents[1] / "lib" / "libweft.so"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
STATUS_LINE = re.compile(r"^    (\d+)  ", re.M)


def weft(*words, **more):
    return subprocess.run([WEFT, *map(str, words)], stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False,
                          **({"capture_output": True, "text": True} | more))


class ExitStatuses(LocalTest):
    def status(self, expected, *words, says="", **more):
        done = weft(*words, **more)
        self.assertEqual(done.returncode, expected, done.stderr)
        if expected:
            self.assertTrue(done.stderr, words)
        self.assertIn(says, done.stderr or "")

    def recorded(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 2000))
        return self.folder / "trace"

    def test_help_names_those_of_record_and_no_others(self):
        named = {int(n) for n in STATUS_LINE.findall(weft("--help").stdout)}
        text = (SOURCE / "cli" / "exit_status.h").read_text()
        ours = {int(n) for n in re.findall(r"inline constexpr int kExit\w+ = (\d+);", text)}
        self.assertEqual(named, ours - {0, 128})
        for command in ("record", "view", "export", "list"):
            self.assertIn("Exit status:", weft(command, "--help").stdout)

    def test_record(self):
        program = ["--", *self.emitter("--events", 10)]
        out = ["record", "-e", "emitter:*", "-o", self.folder / "x"]
        self.status(120, *out, "--no-such-option", *program)
        self.status(121, "record", "-e", "emitter:tik", *program)
        for option in ("--filter", "--exclude", "--event", "--duration", "--context", "--name"):
            self.status(120, *out, option, "", *program, says="must not be empty")
        self.record("-e", "emitter:tick,emitter:none", "-x", "a:*,emitter:none", "--allow-missing",
                    program=self.emitter("--events", 10))
        self.status(122, "record", "-e", "emitter:*", "-o", "/proc/x", *program)
        self.status(126, *out, "--", "/etc/passwd")
        self.status(127, *out, "--", "no-such-program")
        self.status(128 + 9, *out, "--", "sh", "-c", "kill -9 $$", says="0 events")
        shutil.rmtree(self.folder / "x")
        self.status(0, *out, *program)

    def test_wrong_usage_says_what_and_why_in_one_line(self):
        out = ["record", "-e", "emitter:*", "-o", self.folder / "x"]
        commands = "record, view, report, export, list, status, statedump"
        for words, says in ((["bogus"], f"'bogus' is no command; the commands are: {commands}"),
                            (["bogus", "view"], "'bogus' is no command"),
                            ([""], "'' is no command"),
                            ([], f"a command ({commands}) is required"),
                            ([*out, "--", ""], "PROGRAM: the name behind -- must not be empty"),
                            *(([*out, "--pid", pid], f"--pid: '{pid}' is no process id: it is a number from 1 to")
                              for pid in ("abc", "0", "-3", "3.5", "99999999999", "0x10")),
                            *((["view", "-n", number, "x"], f"--limit: '{number}' is no number of events")
                              for number in ("x", "-1", "1e3", "99999999999999999999"))):
            with self.subTest(words=words):
                done = weft(*words)
                self.assertEqual((done.returncode, done.stdout), (120, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)
        self.assertFalse((self.folder / "x").exists())

    def test_a_summary_that_could_not_be_written_is_refused_before_the_program_runs(self):
        ran = self.folder / "ran"
        (self.folder / "link").symlink_to(self.folder)
        for path in (self.folder / "none" / "x", self.folder, self.folder / "link", "/proc/x"):
            with self.subTest(path=path):
                done = weft("record", "-e", "emitter:*", "--allow-missing", "-o", self.folder / "x", "--summary",
                            path, "--", "touch", ran)
                self.assertEqual(done.returncode, 120, done.stderr)
                self.assertRegex(done.stderr, f"--summary: {path}: .+; name a file that can be written\n$")
                self.assertFalse(ran.exists() or (self.folder / "x").exists())
        # Tries a file in the folder of the trace, one that exists, and one behind a link.
        (self.folder / "old").write_text("old")
        (self.folder / "new").symlink_to(self.folder / "target")
        for i, name in enumerate(("trace0/summary", "old", "new")):
            with self.subTest(name):
                self.status(0, "record", "-e", "emitter:*", "-o", self.folder / f"trace{i}", "--summary",
                            self.folder / name, "--", *self.emitter("--events", 10))
                self.assertEqual(json.loads((self.folder / name).read_text())["output"],
                                 str(self.folder / f"trace{i}"))

    def test_a_summary_that_cannot_be_written_is_no_success(self):
        words = ["record", "-e", "emitter:*", "-o", self.folder / "x", "--summary", "/dev/full"]
        self.status(122, *words, "--", *self.emitter("--events", 10), says="/dev/full")

    def test_weft_without_its_other_files(self):
        alone = shutil.copy(WEFT, self.folder / "weft")
        done = subprocess.run([alone, "record", "-e", "emitter:*", "-o", self.folder / "x", "--", "true"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 123, done.stderr)
        self.assertIn("weft-keeper is missing", done.stderr)
        self.assertFalse((self.folder / "x").exists())

    def test_interrupted_at_the_end_weft_leaves_a_readable_trace(self):
        hold = self.folder / "hold"
        process = self.start("-e", "emitter:*", program=self.emitter("--events", 500, "--hold", hold))
        ours = self.wait_for(lambda: self.has_streams() and self.session_processes(process))
        os.kill(ours["weft-agent"], signal.SIGSTOP)  # it answers no more
        try:
            hold.touch()
            self.wait_for(lambda: EMITTER.name[:15] not in map(name_of, children_of(process.pid)))
            process.send_signal(signal.SIGINT)
            _, err = self.finish(process, 123)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(ours["weft-agent"], signal.SIGCONT)
        self.assertIn("interrupted", err)
        self.wait_for(lambda: not any(name_of(pid).startswith("weft-") for pid in ours.values()))
        self.assertEqual(len(self.babeltrace()[0]), 500, "what was left was not written")

    def has_streams(self):
        return any(p.is_file() and p.name != "metadata" and p.stat().st_size > 0
                   for p in (self.folder / "trace").rglob("*"))

    def test_a_program_that_fails_hides_weft_from_the_status_but_not_from_stderr(self):
        self.mount_small()
        for status, program in ((122, 0), (7, 7)):
            output = f"small/{program}"
            _, err = self.record("-e", "emitter:*", "--quiet", output=output, status=status,
                                 program=self.emitter("--events", 200000, "--status", program))
            self.assertIn("No space left on device", err)
            self.assertGreater(sum(self.counts()["lost"].values()), 0)
            shutil.rmtree(self.folder / output)

    def test_view(self):
        trace = self.recorded()
        self.status(0, "view", trace)
        self.status(120, "view")
        self.status(3, "view", self.folder / "nothing", says="nothing")
        with open("/dev/full", "w", encoding="ascii") as full:
            self.status(1, "view", trace, capture_output=False, stdout=full, stderr=subprocess.PIPE,
                        says="cannot be written")
        stream = max((p for p in trace.rglob("*") if p.is_file() and p.name != "metadata"),
                     key=lambda p: p.stat().st_size)
        with open(stream, "r+b") as file:
            file.truncate(stream.stat().st_size - 1000)
        self.status(4, "view", trace, says=stream.name)

    def test_list_and_status(self):
        self.status(0, "list", EMITTER)
        self.status(120, "list")
        self.status(121, "list", "/no/such/program", says="/no/such/program")
        self.status(121, "list", "4194304", says="4194304")
        self.status(120, "status", "--no-such-option")
        self.status(0, "status")
        self.assertIsInstance(json.loads(weft("status", "--json").stdout), list)


class Terminal(LocalTest):
    """Runs `weft` with a pseudo terminal for some of its descriptors."""

    def on_terminal(self, words, stdout, stderr, until=None, then=lambda: None, **environment):
        """Returns the output of the terminal, and of the pipes in its place."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        # \n stays \n
        settings = termios.tcgetattr(theirs)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        process = subprocess.Popen(
            [str(WEFT), *map(str, words)], stdin=subprocess.DEVNULL,
            env=env | {"TERM": "xterm"} | environment,
            stdout=theirs if stdout else subprocess.DEVNULL, stderr=theirs if stderr else subprocess.DEVNULL)
        self.running.append(process)
        os.close(theirs)
        seen, found = "", False
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 1)[0]:
                continue
            try:
                seen += os.read(ours, 65536).decode()
            except OSError:  # the other side is closed
                break
            if until is not None and not found and re.search(until, seen):
                found = True
                then()
        self.assertEqual(process.wait(PATIENCE), 0, seen)
        return seen

    def words(self, hold, *more):
        return ["record", "-e", "emitter:*", *more, "-o", self.folder / "trace", "--",
                *self.emitter("--events", 300, "--hold", hold)]

    def test_progress_while_recording(self):
        hold = self.folder / "hold"
        progress = r"\r\x1b\[Kweft: 300 events, discarded 0, [\d.]+ KiB, 1 process"
        # The program's own standard error is not the terminal.
        words = self.words(hold)
        at = words.index("--") + 1
        words[at:at] = ["sh", "-c", 'exec "$@" 2>/dev/null', "sh"]
        seen = self.on_terminal(words, stdout=False, stderr=True, until=progress, then=hold.touch)
        # It is wiped out at the end: what stays is the summary.
        last = seen.rsplit("\r\x1b[K", 1)[1]
        self.assertRegex(last, r"^weft: 300 events in \d+ streams?, .*\nweft: discarded 0\n$")

    def test_no_progress_beside_what_a_program_writes_to_the_terminal(self):
        script = "for i in 1 2 3 4; do printf 'line %s, ' $i >&2; sleep 0.4; done; echo end >&2"
        for redirected in ("", "exec >/dev/null; "):
            words = ["record", "-e", "emitter:*", "-o", self.folder / "trace", "--", "sh", "-c",
                     redirected + f'"$0" --events 10 && {script}', EMITTER]
            seen = self.on_terminal(words, stdout=True, stderr=True)
            before = seen.split("\r\x1b[K", 1)[0]
            self.assertTrue(before.endswith("line 1, line 2, line 3, line 4, end\n"), seen)
            # Once the program is over, while the rest is written, there may be some.
            self.assertRegex(seen.rsplit("\r\x1b[K", 1)[-1], r"weft: 10 events in 1 stream, .*\nweft: discarded 0\n$")
            shutil.rmtree(self.folder / "trace")

    def test_no_progress_beside_what_attached_programs_write(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to record a process that runs")
        hold = self.folder / "hold"
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        program = subprocess.Popen(
            list(map(str, self.emitter("--events", 10, "--hold", hold))), stdin=subprocess.DEVNULL, stdout=theirs,
            stderr=theirs, env=os.environ | {"LD_PRELOAD": str(LIBRARY), "WEFT_DIR": str(self.folder)})
        self.running.append(program)
        maps = pathlib.Path(f"/proc/{program.pid}/maps")
        self.wait_for(lambda: LIBRARY.name in maps.read_text(), "the library was not loaded")
        weft_of_it = subprocess.Popen([str(WEFT), "record", "--pid", str(program.pid), "-e", "emitter:*", "-o",
                                       str(self.folder / "trace")], stdin=subprocess.DEVNULL, stdout=theirs,
                                      stderr=theirs)
        self.running.append(weft_of_it)
        os.close(theirs)
        self.wait_for(lambda: weft_of_it.poll() is not None or any(
            ": recording," in line and line.endswith(f"{self.folder}/trace")
            for line in weft("status").stdout.splitlines()), "it does not record")
        time.sleep(1.5)  # progress is shown more often
        if select.select([ours], [], [], 0)[0]:
            self.assertNotIn("\r\x1b[K", os.read(ours, 65536).decode())
        hold.touch()
        self.assertEqual(program.wait(PATIENCE), 0)
        self.assertEqual(weft_of_it.wait(PATIENCE), 0)

    def test_no_dev_null(self):
        """A container or a chroot may have no /dev."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to hide /dev")
        self.report.touch()
        hide = "mount -t tmpfs none /dev && exec \"$@\""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", hide, "sh",
                               *self.command("-e", "emitter:*", program=self.emitter("--events", 10))],
                              stdin=subprocess.PIPE, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.counts()["delivered"], 10)

    def test_no_progress_without_a_terminal(self):
        hold = self.folder / "hold"
        for more, stderr in ((["--quiet"], True), ([], False)):
            hold.touch()
            seen = self.on_terminal(self.words(hold, *more), stdout=True, stderr=stderr)
            self.assertEqual(seen, "")
            shutil.rmtree(self.folder / "trace")
        _, err = self.record("-e", "emitter:*", program=self.emitter("--events", 10))
        self.assertNotRegex(err, r"[\r\x1b]")

    def test_colours_of_view(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 20))
        view = ["view", self.folder / "trace"]
        plain = weft(*view).stdout
        self.assertEqual(len(plain.splitlines()), 20)
        self.assertNotIn("\x1b", plain)
        coloured = self.on_terminal(view, stdout=True, stderr=True)
        self.assertIn("\x1b[", coloured)
        self.assertEqual(re.sub(r"\x1b\[[\d;]*m", "", coloured), plain)
        self.assertEqual(weft(*view, "--color", "always").stdout, coloured)
        for environment in ({"TERM": "dumb"}, {"NO_COLOR": "1"}):
            self.assertEqual(self.on_terminal(view, stdout=True, stderr=True, **environment), plain)
        self.assertEqual(self.on_terminal([*view, "--color", "never"], stdout=True, stderr=True), plain)
        as_json = self.on_terminal([*view, "--json"], stdout=True, stderr=True)
        self.assertNotIn("\x1b", as_json)


class Lists(LocalTest):
    def test_list_as_json(self):
        events = {event["name"]: event for event in json.loads(weft("list", "--json", EMITTER).stdout)}
        self.assertEqual(set(events), {"emitter:tick", "emitter:text"})
        for event in events.values():
            self.assertEqual(event["file"], str(EMITTER))
            self.assertEqual(set(event), {"file", "name", "loglevel", "uri", "fields"})
        self.assertEqual(events["emitter:tick"]["loglevel"], 6)
        fields = [(f["name"], f["type"], f["nowrite"]) for f in events["emitter:tick"]["fields"]]
        self.assertIn(("number", "uint64", False), fields)
        self.assertIn(("words", "string", False),
                      [(f["name"], f["type"], f["nowrite"]) for f in events["emitter:text"]["fields"]])
        self.assertEqual(json.loads(weft("list", "--json", "true").stdout), [])


class Environment(LocalTest):
    """Returns the environment of a trace, which describes its origin; that of CTF 1.8 is read as
    text."""

    def env_of(self, trace):
        [metadata] = trace.rglob("metadata")
        text = metadata.read_bytes().decode("latin-1")
        block = re.search(r"\benv \{(.*?)\n\};", text, re.S).group(1)
        return dict(re.findall(r"(\w+)\s*=\s*\"?(.*?)\"?\s*;", block))

    def test_local_recording(self):
        script = f"{EMITTER} --events 5 --report {self.report}; exec {EMITTER} --events 5 --report {self.report}"
        self.record("-e", "emitter:*", "--name", "shop-trace", program=["sh", "-c", script])
        self.assert_complete(10)
        env = self.env_of(self.folder / "trace")
        vpids = [int(line.split()[0]) for line in self.report.read_text().splitlines()]
        self.assertEqual(env["hostname"], os.uname().nodename)
        self.assertEqual(env["domain"], "ust")
        self.assertEqual(env["tracer_name"], "weft")
        self.assertRegex(weft("--version").stdout,
                         rf"^weft {env['tracer_major']}\.{env['tracer_minor']}\.{env['tracer_patch']}$")
        self.assertEqual(env["trace_name"], "shop-trace")
        self.assertRegex(env["trace_creation_datetime"], r"^20\d{6}T\d{6}")
        self.assertEqual(env["procnames"], "sh")  # what stood behind `--`
        self.assertEqual((int(env["vpid_min"]), int(env["vpid_max"])), (min(vpids), max(vpids)))
        self.assertNotIn("pod_name", env)


if __name__ == "__main__":
    unittest.main()
