# SPDX-License-Identifier: Apache-2.0
"""Rings in full use are moved into huge pages while their program writes on."""

import os
import pathlib
import unittest

from tests.local.huge_pages import HUGE, bytes_in_huge_pages, why_no_huge_page
from tests.local.weft_local import EMITTER, LocalTest, children_of, name_of


class HugePages(LocalTest):
    def test_a_ring_in_full_use(self):
        if os.geteuid() != 0:
            self.skipTest("needs root (CAP_SYS_NICE), to move another process's memory")
        why = why_no_huge_page()
        if why:
            self.skipTest(f"no huge page is to be had here: {why}")
        hold = self.folder / "hold"
        # A ring of 2 MiB holds 65,536 ticks; with --overwrite the writer goes round it in any case. On one CPU
        # there is one ring, from its first round on.
        cpu = str(min(os.sched_getaffinity(0)))
        weft = self.start("-e", "emitter:*", "--overwrite",
                          program=["taskset", "-c", cpu, *self.emitter("--events", 200000, "--hold", hold)])
        emitter = self.wait_for(lambda: next(
            (pid for pid in children_of(weft.pid) if name_of(pid) == EMITTER.name[:15]), None))
        smaps = pathlib.Path(f"/proc/{emitter}/smaps")
        try:
            self.wait_for(lambda: bytes_in_huge_pages(smaps.read_text()) >= HUGE, "the ring was not moved")
        except AssertionError:
            # The agent tries for seconds only: other programs may have taken them.
            if why := why_no_huge_page():
                self.skipTest(f"no huge page is to be had here: {why}")
            raise
        hold.touch()
        self.finish(weft)
        self.assertEqual(self.counts()["emitted"], 200000)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), self.counts()["delivered"])
        self.assert_all_missing_is_said()
        self.assert_each_once(lines)


if __name__ == "__main__":
    unittest.main()
