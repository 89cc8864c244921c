# SPDX-License-Identifier: Apache-2.0
"""Rings in full use are moved into huge pages while their program writes on."""

import ctypes
import mmap
import os
import pathlib
import unittest

from weft_local import EMITTER, LocalTest, children_of, name_of

HUGE = 2 << 20
COLLAPSE = 25  # MADV_COLLAPSE
MAP_FIXED = 0x10


class HugePages(LocalTest):
    def test_a_ring_in_full_use(self):
        if os.geteuid() != 0:
            self.skipTest("needs root (CAP_SYS_NICE), to move another process's memory")
        why = why_no_huge_page()
        if why:
            self.skipTest(f"no huge page is to be had here: {why}")
        hold = self.folder / "hold"
        # A ring of 2 MiB holds 65,536 ticks; with --overwrite the writer goes round it in any case.
        weft = self.start("-e", "emitter:*", "--overwrite",
                          program=self.emitter("--events", 200000, "--hold", hold))
        emitter = self.wait_for(lambda: next(
            (pid for pid in children_of(weft.pid) if name_of(pid) == EMITTER.name[:15]), None))
        self.wait_for(lambda: huge_bytes_of(emitter) == HUGE, "the ring was not moved")
        hold.touch()
        self.finish(weft)
        self.assertEqual(self.counts()["emitted"], 200000)
        lines, _ = self.babeltrace()
        self.assertEqual(len(lines), self.counts()["delivered"])
        self.assert_all_missing_is_said()
        self.assert_each_once(lines)


def why_no_huge_page():
    """Tried on memory of our own: a kernel before 6.1 cannot, and others may have none left."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_size_t
    libc.mmap.argtypes = [ctypes.c_size_t] * 6
    libc.madvise.argtypes = libc.munmap.argtypes = [ctypes.c_size_t] * 3
    fd = os.memfd_create("trial")
    try:
        os.ftruncate(fd, HUGE)
        room = libc.mmap(0, 2 * HUGE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0, 0)
        aligned = (room + HUGE - 1) & -HUGE
        libc.mmap(aligned, HUGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED, fd, 0)
        os.pwrite(fd, b"x", 0)
        done = libc.madvise(aligned, HUGE, COLLAPSE)
        why = "" if done == 0 else os.strerror(ctypes.get_errno())
        libc.munmap(room, 2 * HUGE, 0)
        return why
    finally:
        os.close(fd)


def huge_bytes_of(pid):
    """Bytes of rings that this process maps in huge pages."""
    ring, found = False, 0
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, *words = line.split()
        if not name.endswith(":"):
            ring = "memfd:weft-ring" in line
        elif ring and name == "ShmemPmdMapped:":
            found += int(words[0]) * 1024
    return found


if __name__ == "__main__":
    unittest.main()
