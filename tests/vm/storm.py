# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests with kernel_storm. weft record or a node records a Trace of its system calls
and nothing else. The tests compare four books: the program's own, the ring's, weft's, and
babeltrace2's."""

import collections
import dataclasses
import os
import pathlib
import re
import subprocess

from tests.local.weft_local import LocalTest
from tests.vm.node import BUILD, PATIENCE, NodeTest, load_module, order
from tests.vm.ring_books import RingBooks

MODULE = pathlib.Path(os.environ["WEFT_MODULE"])

STORM = BUILD / "tests/vm/kernel_storm"
CPUS = 2  # as many threads as a guest has CPUs
KERNEL = {"syscalls": [{"name": "lseek"}], "statedump": False}
TRACE = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: storm}}
spec:
  kernel: {{syscalls: [{{name: lseek}}], statedump: false}}
  buffer: {{size: {size}, count: {count}, mode: {mode}}}
  output: {{mode: {output}}}
"""
CALL = re.compile(r"syscall_(entry|exit)_lseek: \{ cpu_id = (\d+) \}, "
                  r"\{ (?:fd = (-?\d+), offset = (\d+), whence = .* 7 \)|ret = (-?\d+)) \}")
DISCARDED = re.compile(r"discarded (\d+) events? between")


@dataclasses.dataclass
class Seen:
    """In a folder of CTF, by babeltrace2: the numbers of calls whose entry is there, by thread, in order; how many
    exits, by CPU; how many events, by CPU; and how many it was told of as discarded."""
    entries: dict
    exits: dict
    events: dict
    discarded: int

    @property
    def total(self):
        return sum(self.events.values())


def trace_file(folder, size="512Ki", count=4, mode="discard", output="stream"):
    file = folder / "trace.yaml"
    file.write_text(TRACE.format(size=size, count=count, mode=mode, output=output))
    return file


def program(report, calls, pause_us=0, hold=None):
    return [STORM, report, CPUS, calls, pause_us, *([hold] if hold else [])]


def made(report):
    """Returns the number of calls by thread."""
    return dict(enumerate(map(int, report.read_text().split())))


def seen_in(folder):
    """Fails where there is anything else than the program's calls, or any other warning than of what was discarded."""
    done = subprocess.run(["babeltrace2", str(folder)], capture_output=True, text=True, check=False,
                          timeout=PATIENCE)
    if done.returncode != 0:
        raise AssertionError(f"babeltrace2 {folder}: {done.stderr}")
    entries = collections.defaultdict(list)
    exits, events = collections.Counter(), collections.Counter()
    for line in done.stdout.splitlines():
        call = CALL.search(line)
        if not call:
            raise AssertionError(line)
        side, cpu, fd, number, ret = call.groups()
        events[int(cpu)] += 1
        if side == "entry":
            entries[-1 - int(fd)].append(int(number))
        elif ret != "-9":
            raise AssertionError(line)
        else:
            exits[int(cpu)] += 1
    discarded = 0
    for line in done.stderr.splitlines():
        said = DISCARDED.search(line)
        if not said:
            raise AssertionError(line)
        discarded += int(said[1])
    return Seen(dict(entries), dict(exits), dict(events), discarded)


def assert_in_order(test, seen):
    """Checks that each call's entry is there at most once, and none before an earlier one."""
    for thread, numbers in seen.entries.items():
        wrong = [(a, b) for a, b in zip(numbers, numbers[1:]) if a >= b]
        test.assertEqual(wrong[:5], [], f"thread {thread}")


def assert_prefix(test, seen):
    """Checks that all calls of each thread up to one of them have entry and exit, and that no entry
    follows. Exits may: when weft dies, the module ends the event of entries before that of exits."""
    for thread, numbers in seen.entries.items():
        test.assertEqual(numbers, list(range(len(numbers))), f"thread {thread}")
        test.assertLessEqual(len(numbers) - seen.exits.get(thread, 0), 1, f"thread {thread}")


def assert_same_books(test, counts, seen, ring, calls):
    """`calls`: how many were made."""
    test.assertEqual(ring.emitted(), 2 * sum(calls.values()))
    assert_same_books_of_weft(test, counts, seen, ring)


def assert_same_books_of_weft(test, counts, seen, ring):
    """Compares all books but the program's own. `counts`: in weft's form."""
    reasons = {reason: n for reason, n in counts["discarded"].items() if n != 0}
    test.assertEqual(ring.discarded(), reasons)
    test.assertEqual(counts["recorded"], ring.committed(), counts)
    lost = counts["lost"] if isinstance(counts["lost"], int) else sum(counts["lost"].values())
    test.assertEqual(counts["recorded"], counts["delivered"] + counts["overwritten"] + lost, counts)
    test.assertEqual(seen.total, counts["delivered"], counts)
    test.assertEqual(seen.discarded, sum(reasons.values()) + counts["overwritten"], counts)
    assert_in_order(test, seen)


class LocalStormTest(LocalTest):
    """Tests weft record, with the module."""

    def setUp(self):
        super().setUp()
        load_module(self)

    def start_storm(self, *options, command, **buffer):
        """The program waits until the test has the ring, which goes with the recording."""
        trace, gate = trace_file(self.folder, **buffer), self.folder / "gate"
        wait = ["sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.05; done; exec \"$@\"", "sh"]
        weft = self.start("-f", trace, *options, program=[*wait, *command])
        keeper = self.wait_for(lambda: self.session_processes(weft).get("weft-keeper"))
        try:
            ring = ring_of(self, keeper)
        except FileNotFoundError:
            self.fail(f"weft record has ended: {weft.communicate()[1]}")
        gate.touch()
        return weft, keeper, ring


class NodeStormTest(NodeTest):
    """A node of a cluster with a relay and one tenant, whose programs are recorded."""

    def setUp(self):
        super().setUp()
        self.addCleanup(subprocess.run, ["rmmod", "weft"], check=True)
        self.modules = self.folder / "modules"
        release = self.modules / os.uname().release
        release.mkdir(parents=True)
        (release / "weft.ko").symlink_to(MODULE)
        self.red = self.tenant("reds", "red")
        self.program = None

    def start_storm(self, command, **spec):
        self.api.put("tracesessions", order("reds", self.relay, KERNEL, **spec))
        ring = self.start_recording()
        self.program = self.red.run(*command)
        self.running.append(self.program)
        return ring

    def start_recording(self):
        self.api.statuses.clear()
        self.start_node(modules=self.modules)
        self.wait_condition("reds", "KernelTracing", "True", "Recording")
        return ring_of(self, self.keeper.pid)

    def end_storm(self, **spec):
        """Returns the counts in the form of weft record."""
        self.assertEqual(self.program.wait(PATIENCE), 0)
        events = self.end("reds", KERNEL, **spec)
        reasons = [r for r in events.get("reasons", []) if r["stage"] == "ring" and r["reason"] != "overwritten"]
        return {**{name: events.get(name, 0) for name in ("recorded", "delivered", "overwritten", "lost")},
                "discarded": {r["reason"]: r["count"] for r in reasons}}


def ring_of(test, keeper):
    ring = test.wait_for(lambda: RingBooks.of_process(keeper))
    test.addCleanup(ring.close)
    return ring
