# SPDX-License-Identifier: Apache-2.0
"""weft record --kernel and --syscall, in a guest: what a program asks of its kernel, all of it, in order,
and of nobody else."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "local"))
from weft_local import WEFT, LocalTest  # noqa: E402

MODULE = os.environ["WEFT_MODULE"]
STRACE_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)")
FILES = "openat,close,read,write,getppid,unlink,mkdir,rmdir"
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


def from_mkdir(calls):
    """Without the program's start, which LD_PRELOAD makes another one; and its parent is another one."""
    calls = [(name, None if name == "getppid" else value) for name, value in calls]
    return calls[calls.index(("mkdir", 0)):]


def setUpModule():
    subprocess.run(["insmod", MODULE], check=True)


def tearDownModule():
    subprocess.run(["rmmod", "weft"], check=True)


class RecordTest(LocalTest):
    def python(self):
        return [sys.executable, "-I", "-S", "-c", PROGRAM.format(self.folder / "made")]

    def events(self, output="trace"):
        done = subprocess.run([str(WEFT), "view", "--json", str(self.folder / output)],
                              capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_whole(self, output="trace"):
        """Every event was delivered, and babeltrace2 finds as many, without a warning."""
        counts = self.counts()
        self.assertEqual(sum(counts["discarded"].values()), 0, counts)
        self.assertEqual(counts["delivered"], counts["emitted"], counts)
        lines, said = self.babeltrace(output)
        self.assertEqual(said, "")
        self.assertEqual(len(lines), counts["delivered"])
        return lines

    def strace(self):
        """(name, value) of the calls, in order."""
        log = self.folder / "strace"
        subprocess.run(["strace", "-o", str(log), "-e", f"trace={FILES}", "-e", "signal=none",
                        *self.python()], check=True)
        found = map(STRACE_CALL.match, log.read_text().splitlines())
        return from_mkdir([(call[1], int(call[3], 0)) for call in found if call])

    def calls(self):
        """The same of the trace: an exit follows its entry, for the program has one thread. But for the first
        one, of the write by which it came into its cgroup."""
        made, begun = [], None
        for event in self.events()[1:]:
            _, side, name = event["event"].split("_", 2)
            if side == "entry":
                self.assertIsNone(begun)
                begun = name
            else:
                self.assertEqual(name, begun)
                made.append((name, event["payload"]["ret"]))
                begun = None
        return from_mkdir(made)

    def test_the_same_system_calls_as_strace(self):
        options = [word for call in FILES.split(",") for word in ("--syscall", call)]
        self.record(*options, program=self.python())
        self.assert_whole()
        self.assertEqual(self.calls(), self.strace())

    def test_paths_are_recorded(self):
        self.record("--syscall", "openat", program=self.python())
        names = {event["payload"].get("filename") for event in self.events()}
        self.assertLess({f"{self.folder}/made/file{i}" for i in range(40)}, names)

    def test_scheduling_names_nobody_else(self):
        """What runs beside the program is in its trace as "other", with no number of its own."""
        with subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"]) as stranger:
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
        self.assertEqual(sum("/bin/true" in line for line in lines), 8)

    def test_what_this_kernel_does_not_have(self):
        _, err = self.record("--kernel", "sched_swich", program=["true"], status=121)
        self.assertIn('tracepoint "sched_swich": this kernel has none of that name', err)

    def test_user_and_kernel_events_in_one_trace(self):
        self.record("-e", "emitter:*", "--syscall", "getppid",
                    program=self.emitter("--events", 100))
        delivered = {trace["path"]: trace["delivered"] for trace in self.summary()["traces"]}
        self.assertEqual(len(delivered), 2)
        self.assertEqual(delivered[f"ust/uid/{os.geteuid()}/64-bit"], self.emitted())
        self.assertGreaterEqual(delivered["kernel"], 0)


if __name__ == "__main__":
    unittest.main()
