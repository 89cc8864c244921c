# SPDX-License-Identifier: Apache-2.0
"""Tests in a guest that user space and kernel have one clock: events that a thread makes in turn
here and there, and on one CPU after the other, are in that order after babeltrace2 has merged all
streams by time."""

import re
import subprocess
import unittest

from tests.vm import storm
from tests.vm.node import BUILD

ROUNDS = 5000
TRACE = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: clock}
spec:
  user: {events: [{name: "clock_program:*"}]}
  kernel: {syscalls: [{name: lseek}], statedump: false}
  buffer: {size: 1Mi}
"""
LINE = re.compile(r"^\[(\d+)\.(\d{9})\] .*? (?:clock_program:(mark)|syscall_(entry|exit)_lseek): "
                  r"\{ cpu_id = (\d+) \}, \{ (?:number|fd = -1, offset|ret) = (-?\d+)")


class ClockTest(storm.LocalStormTest):
    def test_user_and_kernel_in_turn(self):
        trace = self.folder / "trace.yaml"
        trace.write_text(TRACE)
        self.record("-f", trace, program=[BUILD / "tests/vm/clock_program", ROUNDS])
        for number in range(2):
            self.assertEqual(self.counts(number)["discarded"], {})
        done = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", self.folder / "trace"], check=True,
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        found = [LINE.match(line) for line in done.stdout.splitlines()]
        self.assertNotIn(None, found, done.stdout[:1000])
        seen = [(line[3] or line[4], int(line[6])) for line in found]
        done_in_turn = []
        for i in range(ROUNDS):
            done_in_turn += [("mark", 2 * i), ("entry", i), ("exit", -9), ("mark", 2 * i + 1)]
        wrong = [(at, one, other) for at, (one, other) in enumerate(zip(seen, done_in_turn)) if one != other]
        self.assertEqual(wrong[:3], [])
        self.assertEqual(len(seen), len(done_in_turn))
        self.assertEqual({line[5] for line in found}, {"0", "1"}, "it stayed on one CPU")


if __name__ == "__main__":
    unittest.main()
