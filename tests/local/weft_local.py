# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of local mode: they run weft, count its output, and end what is left."""

import collections
import contextlib
import functools
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["WEFT_BUILD"])
WEFT = BUILD / "bin" / "weft"
EMITTER = BUILD / "tests" / "local" / "local_emitter"
# Seconds after which anything counts as hung. Machines are slow, and these tests measure nothing.
PATIENCE = float(os.environ.get("WEFT_PATIENCE", "240"))
# A trace of at most this many events is read as text twice.
MANY = 50000
TICK = re.compile(r"emitter:tick: .*process = (\d+), thread = (\d+), number = (\d+)")
MISSING = re.compile(r"Tracer discarded (\d+) events? between .*\((stream class ID: \d+, stream ID: \d+)\)")
PORTS = set(range(20000, 30000))
TEXT = r'"(?:[^"\\]|\\.)*"'  # as readers show it


class LocalTest(unittest.TestCase):
    """A test with a folder of its own, which is removed at its end."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-local-test-"))
        self.folder.chmod(0o777)
        self.report = self.folder / "report"
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)  # it reaps no child, so the numbers stay theirs
                for program in children_of(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        if name_of(program) != "weft-keeper":
                            os.kill(program, signal.SIGKILL)
                process.kill()
                process.wait()

    def mount_small(self, inodes=1000):
        """Mounts a file system at the folder's `small` that is soon full. It holds the largest
        packet (1 MiB), so that something is written, but not what a ring holds, 65,536 ticks of 19
        bytes, so that not all is."""
        small = self.folder / "small"
        small.mkdir()
        if os.geteuid() != 0 or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size=1120k,nr_inodes={inodes}", "tmpfs", small], check=False,
                capture_output=True).returncode != 0:
            self.skipTest("needs root, to mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "-l", small], check=False)
        return small

    # --- running weft

    def command(self, *options, program=None, output="trace"):
        summary = ["--summary", str(self.folder / "summary.json")]
        command = [str(WEFT), "record", *map(str, options), "-o", str(self.folder / output), *summary]
        return command + ["--", *map(str, program or self.emitter())]

    def emitter(self, *options):
        return [EMITTER, "--report", self.report, *options]

    def start(self, *options, program=None, output="trace", **popen):
        process = subprocess.Popen(self.command(*options, program=program, output=output),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **popen)
        self.running.append(process)
        return process

    def finish(self, process, status=0):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, status, err)
        return out, err

    def record(self, *options, program=None, output="trace", status=0, **popen):
        return self.finish(self.start(*options, program=program, output=output, **popen), status)

    # --- what came out

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())

    def counts(self, trace=0):
        """Returns the counts of one trace, and checks that they are whole (property P3)."""
        counts = self.summary()["traces"][trace]
        self.assertEqual(counts["in_flight"], 0)
        self.assertEqual(counts["recorded"], counts["delivered"] + counts["overwritten"] +
                         sum(counts["lost"].values()), counts)
        return counts

    def emitted(self):
        """Returns the number of events that the programs emitted, as each process reported at its
        end."""
        return sum(int(line.split()[1]) for line in self.report.read_text().splitlines())

    def run_view(self, *words):
        """Returns what `weft view` prints of a whole trace."""
        done = subprocess.run([WEFT, "view", *words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def view(self, output="trace"):
        """Returns the events that `weft view` finds, as a list of objects."""
        shown, said = self.run_view("--json", self.folder / output)
        self.assertEqual(said, "")
        if babeltrace_for(self.folder / output) is not None:
            self.babeltrace(output)
        return [json.loads(line) for line in shown.splitlines()]

    def babeltrace(self, output="trace"):
        """Returns the lines of all events, and babeltrace2's messages. `weft view` prints the same
        lines."""
        done = subprocess.run([babeltrace_for(self.folder / output), self.folder / output],
                              capture_output=True, text=True, errors="backslashreplace", timeout=PATIENCE,
                              check=False)  # bytes that are no UTF-8 as weft view shows them
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        if len(lines) <= MANY:
            shown, _ = self.run_view(self.folder / output)
            wrong = [pair for pair in itertools.zip_longest(shown.splitlines(), lines, fillvalue="")
                     if pair[0] != pair[1]]
            self.assertEqual(wrong[:3], [], "weft view, babeltrace2")
        return lines, done.stderr

    def assert_all_missing_is_said(self, output="trace"):
        """Checks that readers report exactly the undelivered events as discarded, stream by stream."""
        counts = self.counts()
        _, said = self.babeltrace(output)
        _, said_by_view = self.run_view(self.folder / output)
        told = [missing_by_stream(text) for text in (said, said_by_view)]
        self.assertEqual(told[0], told[1], "babeltrace2, weft view")
        self.assertEqual(sum(told[0].values()), counts["emitted"] - counts["delivered"], counts)

    def needs_babeltrace_for_ctf_2(self):
        if babeltrace_for_ctf_2() is None:
            self.skipTest("no babeltrace2 that reads CTF 2; weft's own reader read it")

    def assert_complete(self, expected=None, output="trace", times=1):
        """Checks that no event is missing or double, and that all counts agree. `times`: how often
        a process emits each number (once for each time that it executes itself)."""
        expected = self.emitted() if expected is None else expected
        counts = self.counts()
        self.assertEqual(counts["emitted"], expected, counts)
        self.assertEqual(counts["delivered"], expected, counts)
        lines, said = self.babeltrace(output)
        self.assertEqual(len(lines), expected)
        self.assertEqual(said, "")
        self.assert_each_once(lines, times)
        return lines

    def assert_each_once(self, lines, times=1):
        """A process number that Linux gave to several processes, one after the other, stands in the report once for
        each of them."""
        reports = self.report.read_text().splitlines() if self.report.exists() else []
        reported = collections.Counter(line.split()[0] for line in reports)
        ticks = collections.Counter(m.groups() for m in map(TICK.search, lines) if m)
        wrong = [tick for tick, count in ticks.items() if count not in (times, reported[tick[0]])]
        self.assertEqual(wrong[:5], [])

    # --- weft's processes

    def session_processes(self, weft):
        """Returns name -> pid of the processes that belong to this `weft record`."""
        found = {}
        for pid in children_of(weft.pid):
            if name_of(pid) == "weft-keeper":
                found["weft-keeper"] = pid
                for child in children_of(pid):
                    found.setdefault(name_of(child), child)  # before its exec it has the keeper's name
        return found

    def wait_for(self, what, why="something expected did not happen"):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            result = what()
            if result:
                return result
            time.sleep(0.01)
        self.fail(why)

    def kill(self, weft, name):
        pid = self.wait_for(lambda: self.session_processes(weft).get(name) or
                            weft.poll() is not None, f"there is no {name}")
        if pid is True:
            return  # it ended meanwhile; what it says of itself is looked at by finish()
        with contextlib.suppress(ProcessLookupError):  # the same, since then
            os.kill(pid, signal.SIGKILL)
        self.wait_for(lambda: self.session_processes(weft).get(name, pid) != pid or
                      weft.poll() is not None, f"{name} was not started again")


def missing_by_stream(said):
    missing = collections.Counter()
    for line in said.splitlines():
        found = MISSING.search(line)
        if not found:
            raise AssertionError(line)
        missing[found[2]] += int(found[1])
    return missing


def babeltrace_for(folder):
    """Returns the babeltrace2 that reads this trace; None: there is none here (CTF 2 takes 2.1)."""
    metadata = next(folder.rglob("metadata"), None)
    is_1_8 = metadata is None or metadata.read_bytes().startswith(b"/* CTF 1.8")
    return "babeltrace2" if is_1_8 else babeltrace_for_ctf_2()


@functools.cache
def babeltrace_for_ctf_2():
    program = os.environ.get("WEFT_BABELTRACE2", "babeltrace2")
    with contextlib.suppress(OSError):
        version = subprocess.run([program, "--version"], capture_output=True, text=True,
                                 timeout=PATIENCE, check=False).stdout
        found = re.match(r"Babeltrace (\d+)\.(\d+)", version)
        if found and (int(found[1]), int(found[2])) >= (2, 1):
            return program
    return None


def free_port():
    """Returns a port that stays free: by default the kernel itself gives those from 32768 on to others."""
    while True:
        port = random.choice(tuple(PORTS))
        PORTS.remove(port)  # this process does not get it twice
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            return port


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def children_of(pid):
    try:
        return [int(p) for p in
                pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_running(pid):
    """Is the process neither gone nor a zombie?"""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def session_folder(keeper):
    """Returns the folder that a keeper was started for; None before it runs."""
    try:
        words = pathlib.Path(f"/proc/{keeper}/cmdline").read_text().split("\0")
    except OSError:
        return None
    return pathlib.Path(words[words.index("--dir") + 1]) if "--dir" in words else None
