# SPDX-License-Identifier: Apache-2.0
"""Tests weft record --kernel and --syscall in a guest: all system calls of a program, in order, and
those of no other process."""

import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from tests.local.weft_local import BUILD, WEFT, LocalTest
from tests.vm import missed_hits

MODULE = os.environ["WEFT_MODULE"]
SYSTEM_CALLS = BUILD / "tests/vm/system_calls"
STRACE_WORD = re.compile(r'"(?:[^"\\]|\\.)*"(?:\.{3})?|[^, ]+')
# The arguments that strace shows of an entry, in its order; a read's buffer has no contents yet.
SHOWN = {"openat": ["dfd", "filename", "flags", "mode"], "close": ["fd"], "read": ["fd", None, "count"],
         "write": ["fd", "buf_data", "count"], "getppid": [], "unlink": ["pathname"],
         "mkdir": ["pathname", "mode"], "rmdir": ["pathname"]}
STRACE_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
FTRACE_CALL = re.compile(r"-(\d+) +\[.*?: sys_(\w+)(?:\((.*)\)| -> (0x[0-9a-f]+))$")
FILES = "openat,close,read,write,getppid,unlink,mkdir,rmdir"
STATE = "lttng_statedump_"
PROGRAM = """
import os
os.mkdir("{0}")
for i in range(40):
    fd = os.open("{0}/file%d" % i, os.O_CREAT | os.O_RDWR, 0o600)
    os.write(fd, b"x" * i)
    os.close(fd)
    os.unlink("{0}/file%d" % i)
    os.getppid()
os.rmdir("{0}")
"""


# Calls with several buffers, more than are recorded among them, and reads of less than those have room for.
WITH_BUFFERS = """
import os, socket
reader, writer = os.pipe()
for count in (1, 2, 11, 20):
    os.writev(writer, [b"%d of %d\\n" % (i, count) * (1 + i % 3) for i in range(count)])
    os.readv(reader, [bytearray(i) for i in range(5, 17)])
file = os.memfd_create("buffers")
os.pwritev(file, [b"begins", b"ends"], 3)
os.preadv(file, [bytearray(4), bytearray(3), bytearray(100)], 1)
ours, theirs = socket.socketpair()
ours.sendmsg([b"one", b"", b"three"])
theirs.recvmsg_into([bytearray(2), bytearray(20)])
try:
    os.readv(writer, [bytearray(5)])
except OSError:
    pass
"""
BUFFER_CALLS = ("writev", "readv", "pwritev", "preadv", "sendmsg", "recvmsg")
STRACE_BUFFER = re.compile(r'iov_base=(0x\w+|NULL|"(?:[^"\\]|\\.)*"), iov_len=(\d+)')
RECORDED_BUFFERS = 16
OF_A_USER = """
import os
for user in (0, 4242):
    if os.fork() == 0:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        for i in range(10):
            os.getppid()
        os._exit(0)
    os.wait()
"""
# Its sleep is 100 ms from where it is in the kernel: time.sleep's ends at a time that Python chose before.
WRITES = """
import ctypes, os
file = os.open("/dev/null", os.O_WRONLY)
for count in range(4711, 4721):
    os.write(file, b"x" * count)
ctypes.CDLL(None).usleep(100_000)
"""
PROBED = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  kernel:
    statedump: false
    probes:
      - {name: write, symbol: vfs_write, at: both}
      - {name: slept, symbol: hrtimer_nanosleep, at: return}
"""


def number(value):
    """Returns a number; None: it is a text or bytes."""
    if isinstance(value, dict):
        value = value["value"]  # beside it, its labels
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16)
    return value if isinstance(value, int) else None


def from_strace(word):
    """Returns a text as bytes, flags and other numbers as a number."""
    if word.startswith('"'):
        return word.rstrip(".")[1:-1].encode().decode("unicode_escape").encode("latin-1")
    value = 0
    for part in word.split("|"):
        if part == "AT_FDCWD":
            value = -100
        elif part[0].isdigit() or part[0] == "-":
            value |= int(part, 8 if part[0] == "0" else 10)
        else:
            value |= getattr(os, part)
    return value


def from_payload(value):
    if isinstance(value, dict):
        return value["value"]
    if isinstance(value, list):
        return bytes(value)
    return value.encode() if isinstance(value, str) else value


def arguments(name, words):
    """Returns {field: value} of what strace shows."""
    return {field: from_strace(word) for field, word in zip(SHOWN[name], words) if field}


def from_mkdir(calls):
    """Leaves out the program's start, which differs with LD_PRELOAD, and its parent, which is
    another process."""
    calls = [(name, shown, None if name == "getppid" else value) for name, shown, value in calls]
    return calls[[name for name, _, _ in calls].index("mkdir"):]


def setUpModule():
    subprocess.run(["insmod", MODULE], check=True)


def tearDownModule():
    subprocess.run(["rmmod", "weft"], check=True)


class RecordTest(LocalTest):
    def python(self):
        return [sys.executable, "-I", "-S", "-c", PROGRAM.format(self.folder / "made")]

    def events(self, output="trace"):
        """Returns the events without the state dump of the start."""
        return [e for e in self.everything(output) if not e["event"].startswith(STATE)]

    def everything(self, output="trace"):
        done = self.view(output)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def view(self, output):
        return subprocess.run([str(WEFT), "view", "--json", str(self.folder / output)],
                              capture_output=True, text=True, check=False)

    def assert_whole(self, output="trace"):
        """Checks that every event was delivered, and that babeltrace2 finds as many, without a
        warning."""
        counts = self.counts()
        self.assertEqual(sum(counts["discarded"].values()), 0, counts)
        self.assertEqual(counts["delivered"], counts["emitted"], counts)
        lines, said = self.babeltrace(output)
        self.assertEqual(said, "")
        self.assertEqual(len(lines), counts["delivered"])
        return lines

    def strace(self):
        """Returns (name, arguments, value) of the calls, in order."""
        log = self.folder / "strace"
        subprocess.run(["strace", "-s", "4096", "-o", str(log), "-e", f"trace={FILES}", "-e", "signal=none",
                        *self.python()], check=True)
        found = map(STRACE_CALL.match, log.read_text().splitlines())
        return from_mkdir([(call[1], arguments(call[1], STRACE_WORD.findall(call[2])), int(call[3], 0))
                           for call in found if call])

    def calls(self):
        """Returns the calls of the trace: an exit follows its entry, because the program has one
        thread. Leaves out the first one, the write by which the program came into its cgroup."""
        made, begun, shown = [], None, {}
        for event in self.events()[1:]:
            _, side, name = event["event"].split("_", 2)
            if side == "entry":
                self.assertIsNone(begun)
                begun = name
                shown = {field: from_payload(event["payload"][field]) for field in SHOWN[name] if field}
            else:
                self.assertEqual(name, begun)
                made.append((name, shown, event["payload"]["ret"]))
                begun = None
        return from_mkdir(made)

    def test_the_same_system_calls_as_strace(self):
        """The calls have strace's order, arguments (texts and written bytes, too) and results."""
        options = [word for call in FILES.split(",") for word in ("--syscall", call)]
        self.record(*options, "--syscall-buffer", "4096", program=self.python())
        self.assert_whole()
        own, theirs = self.calls(), self.strace()
        # A mode that strace does not show has no meaning.
        for (_, shown, _), (_, known, _) in zip(own, theirs):
            if "mode" not in known:
                shown.pop("mode", None)
        self.assertEqual(own, theirs)
        self.assertIn(("write", {"fd": 3, "buf_data": b"xxxxx", "count": 5}, 5), own)

    def test_kernel_events_alone_preload_nothing(self):
        seen = self.folder / "environment"
        self.record("--syscall", "getppid",
                    program=["sh", "-c", f'echo "${{LD_PRELOAD-none}} ${{WEFT_DIR-none}}" > {seen}'])
        self.assertEqual(seen.read_text(), "none none\n")

    def strace_buffers(self, program):
        """Returns (name, lengths of buffers, what is in them, result) of the calls, in order."""
        log = self.folder / "strace"
        subprocess.run(["strace", "-s", "4096", "-o", log, "-e", "trace=" + ",".join(BUFFER_CALLS), "-e",
                        "signal=none", *program], check=True)
        made = []
        found = map(STRACE_CALL.match, log.read_text().splitlines())
        for name, shown, value in (call.groups() for call in found if call):
            # strace shows an address if nothing was read.
            buffers = [(b"" if text[0] != '"' else from_strace(text), int(size))
                       for text, size in STRACE_BUFFER.findall(shown)]
            made.append((name, [size for _, size in buffers], b"".join(text for text, _ in buffers), int(value, 0)))
        return made

    def recorded_buffers(self):
        made, entry = [], {}
        for event in self.events():
            _, side, name = event["event"].split("_", 2)
            fields = event["payload"]
            entry = {**(entry if side == "exit" else {}), **fields}
            if side == "exit":
                # strace has the error's name.
                made.append((name, entry["iov_len"], from_payload(entry["iov_data"]), max(entry["ret"], -1)))
        return made

    def test_buffers_as_strace_shows_them(self):
        """Each call has as many buffers as are recorded, with the bytes that were read or
        written."""
        program = [sys.executable, "-I", "-S", "-c", WITH_BUFFERS]
        options = [word for call in BUFFER_CALLS for word in ("--syscall", call)]
        self.record(*options, "--syscall-buffer", "4096", program=program)
        self.assert_whole()
        own, theirs = self.recorded_buffers(), self.strace_buffers(program)
        self.assertEqual([(name, value) for name, _, _, value in own], [(name, value) for name, _, _, value in theirs])
        for (name, lengths, data, _), (_, all_lengths, all_data, _) in zip(own, theirs):
            self.assertEqual(lengths, all_lengths[:RECORDED_BUFFERS], name)
            if name in ("writev", "pwritev", "sendmsg"):
                all_data = all_data[:sum(lengths)]
            self.assertEqual(data, all_data, name)
        self.assertIn(("sendmsg", [3, 0, 5], b"onethree", 8), own)
        self.assertEqual(max(len(lengths) for _, lengths, _, _ in theirs), 20)

    @contextlib.contextmanager
    def ftrace(self, instance):
        """While this block runs, ftrace also records these system calls, of every task."""
        instance.mkdir()
        self.addCleanup(instance.rmdir)
        (instance / "buffer_size_kb").write_text("16384")
        for call in FILES.split(","):
            for side in ("enter", "exit"):
                (instance / f"events/syscalls/sys_{side}_{call}/enable").write_text("1")
        yield
        (instance / "tracing_on").write_text("0")

    def test_the_same_as_ftrace_in_the_same_run(self):
        """Both record equal calls, in order, with equal numbers as arguments, and equal results."""
        options = [word for call in FILES.split(",") for word in ("--syscall", call)]
        instance = TRACEFS / "instances/weft"
        with self.ftrace(instance):
            self.record(*options, "--context", "vtid", program=self.python())
        self.assert_whole()
        own = self.events()
        first = next(i for i, e in enumerate(own) if e["event"] == "syscall_entry_mkdir")
        thread = own[first]["context"]["vtid"]
        own = [e for e in own[first:] if e["context"]["vtid"] == thread]
        found = map(FTRACE_CALL.search, (instance / "trace").read_text().splitlines())
        theirs = [call.groups()[1:] for call in found if call and int(call[1]) == thread]
        theirs = theirs[next(i for i, call in enumerate(theirs) if call[0] == "mkdir"):]
        self.assertEqual([e["event"].split("_", 2)[1:] for e in own],
                         [["exit" if result else "entry", name] for name, _, result in theirs])
        compared = 0
        for event, (_, arguments, result) in zip(own, theirs):
            payload = {k: number(v) for k, v in event["payload"].items()}
            if result:
                self.assertEqual(payload["ret"] % 2**64, int(result, 16), event)
                continue
            for name, value in (word.split(": ") for word in arguments.split(", ") if word):
                if payload.get(name) is not None:
                    self.assertEqual(payload[name] % 2**32, int(value, 16) % 2**32, event)
                    compared += 1
        self.assertGreater(compared, 160)

    def test_a_tracker(self):
        trace = self.folder / "trace.yaml"
        trace.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\n"
                         "spec: {kernel: {syscalls: [{name: getppid}]}, trackers: {vuid: [4242]},\n"
                         "       context: [vuid]}\n")
        self.record("-f", str(trace), program=[sys.executable, "-I", "-S", "-c", OF_A_USER])
        self.assert_whole()
        self.assertEqual([e["context"]["vuid"] for e in self.events()], [4242] * 20)

    def test_paths_are_recorded(self):
        self.record("--syscall", "openat", program=self.python())
        names = {event["payload"].get("filename") for event in self.events()}
        self.assertLess({f"{self.folder}/made/file{i}" for i in range(40)}, names)

    def test_flags_have_names(self):
        """A single value has its name; several bits have their names in the trace's description,
        and are shown as babeltrace2 shows them."""
        program = f"import os; os.getrandom(8, os.GRND_NONBLOCK); os.open('{self.folder}/a', os.O_CREAT | os.O_RDWR)"
        self.record("--syscall", "openat", "--syscall", "getrandom",
                    program=[sys.executable, "-I", "-S", "-c", program])
        lines = self.assert_whole()
        payloads = [event["payload"] for event in self.events()]
        self.assertIn({"value": 1, "labels": ["GRND_NONBLOCK"]}, [p.get("flags") for p in payloads])
        made = next(p for p in payloads if p.get("filename") == f"{self.folder}/a")
        self.assertEqual(made["flags"], {"value": os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, "labels": []})
        self.assertTrue(any('flags = ( <unknown> : container = 02000102 )' in line for line in lines))

    def test_scheduling_shows_other_tasks_as_other(self):
        """Tasks that run beside the program are in its trace as "other", without numbers of their
        own."""
        # pylint: disable-next=consider-using-with
        stranger = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
        self.running.append(stranger)
        self.record("--kernel", "sched_*", program=["sh", "-c", "sleep 0.1; sleep 0.1; true"])
        stranger.kill()
        self.assert_whole()
        names = collections.Counter()
        for event in self.events():
            for key, value in event["payload"].items():
                if key.endswith("comm"):
                    names[value] += 1
        self.assertLessEqual(set(names), {"weft", "sh", "sleep", "other"}, names)
        self.assertIn("sleep", names)

    def test_statedump_at_the_start(self):
        """The program goes on until its state was dumped. The dump matches /proc, and has no other
        process."""
        hold = self.folder / "hold"
        hold.touch()
        script = f"exec 9<{__file__}; while [ -e {hold} ]; do sleep 0.05; done"
        weft = self.start("--kernel", "sched_process_exit", program=["sh", "-c", script])
        self.wait_for(lambda: STATE + "end" in self.view("trace").stdout)
        hold.unlink()
        self.finish(weft)
        self.assert_whole()
        seen = collections.defaultdict(list)
        for event in self.everything():
            seen[event["event"].removeprefix(STATE)].append(event["payload"])
        self.assertEqual(len(seen["start"]), 1)
        self.assertEqual(seen["end"][0]["lost"], 0)
        self.assertTrue(seen["process_state"])
        self.assertLessEqual({task["name"] for task in seen["process_state"]}, {"weft", "sh", "sleep"})
        pids = {task["pid"] for task in seen["process_state"]}
        self.assertLessEqual({file["pid"] for file in seen["file_descriptor"]}, pids)
        self.assertLessEqual({mapping["pid"] for mapping in seen["vm_map"]}, pids)
        # It depends on the moment which ones are there: the loader may still be at work.
        self.assertTrue(any(mapping["filename"].startswith("/") for mapping in seen["vm_map"]))

    def test_a_second_statedump_on_request(self):
        """A second dump, on request, has what came meanwhile."""
        hold, later = self.folder / "hold", self.folder / "later"
        hold.touch()
        script = (f"while ! [ -e {later} ]; do sleep 0.05; done; exec 9<{later}; "
                  f"while [ -e {hold} ]; do sleep 0.05; done")
        weft = self.start("--kernel", "sched_process_exit", program=["sh", "-c", script])

        def told(what):
            return self.view("trace").stdout.count(STATE + what)
        self.wait_for(lambda: told("end") == 1)
        later.touch()
        shell = self.wait_for(lambda: self.holder_of(later))
        asked = subprocess.run([str(WEFT), "statedump"], capture_output=True, text=True, check=True)
        self.assertEqual(asked.stdout, "sh: asked\n")
        self.wait_for(lambda: told("end") == 2)
        hold.unlink()
        self.finish(weft)
        self.assert_whole()
        ends = [e["event"].removeprefix(STATE) for e in self.everything()]
        files = [(ends[:i].count("start"), e["payload"]) for i, e in enumerate(self.everything())
                 if e["event"] == STATE + "file_descriptor"]
        self.assertEqual([turn for turn, f in files if (f["pid"], f["filename"]) == (shell, str(later))], [2])
        refused = subprocess.run([str(WEFT), "statedump"], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 121)
        self.assertIn("nothing of the kernel is being recorded", refused.stderr)

    @staticmethod
    def holder_of(path):
        """Returns the process that has this file open, if any."""
        for link in pathlib.Path("/proc").glob("[0-9]*/fd/9"):
            try:
                if os.readlink(link) == str(path):
                    return int(link.parts[2])
            except OSError:
                pass
        return None

    def test_hits_that_the_kernel_missed(self):
        """Hits of this program or another one are shown beside the counts, which are whole without them."""
        trace = self.folder / "trace.yaml"
        trace.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\n"
                         f"spec: {{kernel: {json.dumps(missed_hits.KERNEL)}}}\n")
        _, said = self.record("-f", trace, program=missed_hits.PROGRAM)
        self.assert_whole()
        names = collections.Counter(event["event"] for event in self.everything())
        self.assertEqual(names, {"taken_entry": missed_hits.CALLS, "taken_exit": missed_hits.KEPT})
        missed = self.counts()["missed_anywhere"]
        self.assertGreaterEqual(missed, missed_hits.MISSED)
        self.assertIn(f"weft: {missed} hits of its kernel probes, by any program of this machine, missed", said)

    def test_no_statedump_where_it_is_not_wanted(self):
        trace = self.folder / "trace.yaml"
        trace.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\n"
                         "spec: {kernel: {syscalls: [{name: getppid}], statedump: false}}\n")
        self.record("-f", str(trace), program=self.python())
        self.assertEqual([e for e in self.everything() if e["event"].startswith(STATE)], [])

    def test_a_filter_and_a_context(self):
        self.record("--syscall", "write", "--filter", "count == 7", "--context", "vtid",
                    "--context", "procname", program=self.python())
        events = [e for e in self.events() if e["event"] == "syscall_entry_write"]
        self.assertEqual([e["payload"]["count"] for e in events], [7])
        self.assertTrue(all(e["context"]["procname"].startswith("python") for e in events))

    def test_the_agent_is_killed(self):
        hold = self.folder / "hold"
        script = f"for i in 1 2 3 4; do /bin/true; done; touch {hold}; " \
                 f"while [ -e {hold} ]; do sleep 0.05; done; for i in 1 2 3 4; do /bin/true; done"
        weft = self.start("--kernel", "sched_process_exec", program=["sh", "-c", script])
        self.wait_for(hold.exists)
        self.kill(weft, "weft-agent")
        hold.unlink()
        self.finish(weft)
        lines = self.assert_whole()
        # The state dump may see one of them running, too.
        executed = [line for line in lines if " sched_process_exec: " in line]
        self.assertEqual(sum("/bin/true" in line for line in executed), 8)

    def test_tracepoints_and_system_calls_together(self):
        self.record("--kernel", "sched_*", "--syscalls", "openat", program=self.python())
        self.assert_whole()
        names = {event["event"] for event in self.events()}
        self.assertLessEqual({"sched_switch", "syscall_entry_openat", "syscall_exit_openat"}, names)
        self.assertEqual({n for n in names if not n.startswith("sched_")},
                         {"syscall_entry_openat", "syscall_exit_openat"})

    def test_trackers_by_the_nodes_numbers(self):
        """The process that runs this sees the node's own: of the program's two children that of user and group 4242."""
        trace = self.folder / "trace.yaml"
        for tracker in ("uid: [4242]", "gid: [4242]", "vgid: [4242]", "uid: [4242], gid: [4242]"):
            trace.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\n"
                             f"spec: {{kernel: {{syscalls: [{{name: getppid}}]}}, trackers: {{{tracker}}},\n"
                             "       context: [uid, gid]}\n")
            output = tracker.replace(" ", "")
            self.record("-f", str(trace), program=[sys.executable, "-I", "-S", "-c", OF_A_USER],
                        output=output)
            self.assert_whole(output)
            contexts = [(e["context"]["uid"], e["context"]["gid"]) for e in self.events(output)]
            self.assertEqual(contexts, [(4242, 4242)] * 20, tracker)

    def test_a_filter_that_asks_for_what_is_not_there(self):
        trace = self.folder / "trace.yaml"
        trace.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec: {kernel: "
                         "{tracepoints: [{name: sched_switch, filter: 'prev_com == \"sh\"'}]}}\n")
        _, err = self.record("-f", str(trace), program=["true"], status=121)
        self.assertIn('has no field "prev_com", did you mean "prev_comm"?', err)

    def test_a_field_that_this_kernel_does_not_have(self):
        """From 6.2 on, rss_stat passes no count; this is reported for a pattern, too."""
        _, err = self.record("--kernel", "rss_*", program=["true"])
        version = tuple(map(int, os.uname().release.split(".")[:2]))
        told = "\"rss_stat\": without field count: this kernel has no argument 'count'" in err
        self.assertEqual(told, version >= (6, 2), err)

    def test_a_tracepoint_that_this_kernel_does_not_have(self):
        _, err = self.record("--kernel", "sched_swich", program=["true"], status=121)
        self.assertIn('tracepoint "sched_swich": this kernel has none of that name', err)

    def assert_refused(self, *options, output="none"):
        """Checks for status 121, and that no folder is left: neither this one nor its parents."""
        _, err = self.record(*options, program=["true"], output=f"{output}/a/b", status=121)
        self.assertFalse((self.folder / output).exists())
        return err

    def test_suggests_similar_names(self):
        for option, name, near in (("--kernel", "sched_swich", "sched_switch"),
                                   ("--syscall", "opennat", "openat"),
                                   ("--syscall", "sys_enter_openat", "openat"),
                                   ("--syscall", "__x64_sys_read", "read")):
            self.assertIn(f', did you mean "{near}"?', self.assert_refused(option, name))

    def probe(self, *rules):
        """Writes a Trace with these probes."""
        trace = self.folder / "trace.yaml"
        trace.write_text(PROBED[:PROBED.index("      - ")] + "".join(f"      - {{{rule}}}\n" for rule in rules))
        return "-f", trace

    def test_what_the_kernel_refuses(self):
        """The message has the reason and the request. An empty folder that existed before stays
        empty."""
        err = self.assert_refused(*self.probe("name: a, symbol: vfs_read", "name: inside, symbol: vfs_read, offset: 2"))
        self.assertIn('probe of function "vfs_read" at offset 2: no instruction begins there', err)
        for at in ("entry", "return"):
            err = self.assert_refused(*self.probe(f"name: blind, symbol: get_kprobe, at: {at}"))
            self.assertIn('probe of function "get_kprobe": the kernel does not let this place be probed', err)
        err = self.assert_refused("--syscall", "getppid", "--context", "perf:cpu:cycles")
        self.assertIn('context "perf:cpu:cycles": Operation not supported: this machine has no such counter', err)
        (self.folder / "there").mkdir()
        self.record(*self.probe("name: blind, symbol: get_kprobe"), program=["true"], output="there", status=121)
        self.assertEqual(list((self.folder / "there").iterdir()), [])
        self.assertEqual(list(pathlib.Path("/sys/fs/cgroup").glob("**/weft-*")), [])

    def test_calls_of_unknown_numbers_and_returns_from_signals(self):
        self.record("--syscall", "unknown", "--syscall", "rt_sigreturn", program=[SYSTEM_CALLS])
        self.assert_whole()
        events = [(e["event"], e["payload"]) for e in self.events()]
        entries = [p for name, p in events if name == "syscall_entry_unknown"]
        self.assertEqual([p["id"] for p in entries], [9999, 1000, -1])
        self.assertEqual([number(entries[0][f"arg{i}"]) for i in range(6)], [1, 2, 3, 4, 5, 6])
        self.assertEqual([(p["id"], p["ret"]) for name, p in events if name == "syscall_exit_unknown"],
                         [(9999, -38), (1000, -38), (-1, -38)])
        compat = [(name, p["id"]) for name, p in events if name.startswith("compat_")]
        self.assertEqual(compat, [("compat_syscall_entry_unknown", 9998), ("compat_syscall_exit_unknown", 9998)])
        self.assertEqual([name for name, _ in events if "sigreturn" in name],
                         ["syscall_entry_rt_sigreturn", "syscall_exit_rt_sigreturn"] * 2)

    def test_an_exec_that_changes_the_abi_ends_as_it_began(self):
        """At the exit of an exec, the kernel shows execve of the new program's table; here each
        exit has its entry's name."""
        self.record("--syscall", "execve", "--syscall", "execveat", program=[SYSTEM_CALLS, "exec"])
        self.assert_whole()
        calls = [(e["event"], e["payload"].get("ret")) for e in self.events()]
        first = next(i for i, (name, _) in enumerate(calls) if name.startswith("compat_"))
        self.assertEqual(calls[first:], [
            ("compat_syscall_entry_execve", None), ("compat_syscall_exit_execve", 0),  # from 32 to 64 bits
            ("syscall_entry_execve", None), ("syscall_exit_execve", -2),
            ("syscall_entry_execve", None), ("syscall_exit_execve", 0),  # from 64 to 32
            ("syscall_entry_execveat", None), ("syscall_exit_execveat", 0)])

    def test_calls_that_32_bit_programs_make_through_others(self):
        self.record("--syscall", "connect", "--syscall", "semget", "--syscall", "semctl", program=[SYSTEM_CALLS])
        self.assert_whole()
        events = [(e["event"].removeprefix("compat_syscall_"), e["payload"]) for e in self.events()
                  if e["event"].startswith("compat_")]
        self.assertEqual([name for name, _ in events],
                         [side + name for name in ("connect", "semget", "semctl") for side in ("entry_", "exit_")])
        connect, semget = events[0][1], events[2][1]
        self.assertEqual((connect["call"], connect["dport"], connect["addrlen"]), (3, 7777, 16))
        self.assertEqual((semget["call"], semget["nsems"], number(semget["semflg"])), (2, 3, 0o600))
        self.assertEqual((events[1][1]["ret"], events[1][1]["call"]), (0, 3))

    def test_all_calls_where_no_tracefs_is_mounted(self):
        """Parameters have their names and types."""
        for place in (TRACEFS, TRACEFS.parent / "debug/tracing"):
            if place.is_mount():
                subprocess.run(["umount", place], check=True)
                self.addCleanup(subprocess.run, ["mount", "-t", "tracefs", "none", place], check=True)
        _, said = self.record("--syscall", "*", program=[SYSTEM_CALLS])
        self.assertNotIn("tracefs", said)
        names = collections.Counter(e["event"] for e in self.events())
        self.assertEqual((names["syscall_entry_unknown"], names["compat_syscall_entry_socketcall"]), (3, 2))
        self.assertEqual((names["syscall_entry_rt_sigreturn"], names["syscall_exit_rt_sigreturn"]), (2, 2))
        actions = [e["payload"] for e in self.events() if e["event"] == "syscall_entry_rt_sigaction"]
        self.assertTrue(all("sigsetsize" in p for p in actions), actions)

    def test_a_program_of_root_has_addresses_of_the_kernel(self):
        self.record(*self.probe("name: reads, symbol: vfs_read"), program=["cat", "/proc/version"])
        reads = [e["payload"] for e in self.events()]
        self.assertTrue(reads)
        self.assertTrue(all({"ip", "file", "buf", "count", "pos"} <= set(p) for p in reads), reads[:1])

    def test_what_is_written_and_read(self):
        """As many bytes as requested are recorded: of a write at its entry, of a read at its exit."""
        program = f"import os; fd = os.open('{self.folder}/a', os.O_CREAT | os.O_RDWR); " \
                  "os.write(fd, b'hello, world'); os.lseek(fd, 7, 0); os.read(fd, 100)"
        python = [sys.executable, "-I", "-S", "-c", program]
        options = ["--syscall", "write", "--syscall", "read"]
        self.record(*options, "--syscall-buffer", "8", program=python)
        self.assert_whole()
        events = [(event["event"], event["payload"]) for event in self.events()]
        written = [bytes(p["buf_data"]) for name, p in events if name == "syscall_entry_write"]
        read = [bytes(p["buf_data"]) for name, p in events if name == "syscall_exit_read"]
        self.assertIn(b"hello, w", written)
        self.assertIn(b"world", read)
        self.assertIn(b"\x7fELF\2\1\1\0", read)
        self.record(*options, program=python, output="without")
        self.assertFalse([e for e in self.events("without") if "buf_data" in e["payload"]])

    def test_functions_of_the_kernel(self):
        """The entry has typed parameters; the return has the returned value and the duration
        in ns."""
        trace = self.folder / "trace.yaml"
        trace.write_text(PROBED)
        self.record("-f", str(trace), program=[sys.executable, "-I", "-S", "-c", WRITES])
        self.assert_whole()
        events = [(event["event"], event["payload"]) for event in self.events()]
        first = next(i for i, (name, payload) in enumerate(events)
                     if name == "write_entry" and payload["count"] == 4711)
        writes = events[first:first + 20]
        self.assertEqual([name for name, _ in writes], ["write_entry", "write_exit"] * 10)
        self.assertEqual([payload["count"] for _, payload in writes[::2]], list(range(4711, 4721)))
        self.assertEqual([payload["ret"] for _, payload in writes[1::2]], list(range(4711, 4721)))
        self.assertTrue(all(payload["duration"] > 0 for _, payload in writes[1::2]), writes)
        slept = [payload for name, payload in events if name == "slept"]
        self.assertEqual({payload["ret"] for payload in slept}, {0})
        self.assertGreater(max(payload["duration"] for payload in slept), 90 * 10**6)
        trace.write_text(PROBED.replace("vfs_write", "vfs_wriet").replace("hrtimer", "timer"))
        _, err = self.record("-f", str(trace), program=["true"], output="none", status=121)
        self.assertIn("this kernel has no function 'vfs_wriet'; this kernel has no function 'timer_nanosleep'", err)

    def test_system_calls_by_number(self):
        self.record("--syscall", "110", program=self.python())  # x86-64's getppid
        self.assert_whole()
        self.assertEqual({event["event"] for event in self.events()},
                         {"syscall_entry_getppid", "syscall_exit_getppid"})
        _, err = self.record("--syscall", "9999", program=["true"], output="none", status=121)
        self.assertIn('system call "9999": this kernel has none of that name or number', err)

    def test_user_and_kernel_events_in_one_trace(self):
        self.record("-e", "emitter:*", "--syscall", "getppid",
                    program=self.emitter("--events", 100))
        delivered = {trace["path"]: trace["delivered"] for trace in self.summary()["traces"]}
        self.assertEqual(len(delivered), 2)
        self.assertEqual(delivered[f"ust/uid/{os.geteuid()}/64-bit"], self.emitted())
        self.assertGreaterEqual(delivered["kernel"], 0)


if __name__ == "__main__":
    unittest.main()
