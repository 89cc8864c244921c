# SPDX-License-Identifier: Apache-2.0
"""Helpers for huge pages: does the machine have any, and are rings in them?"""

import ctypes
import mmap
import os

HUGE = 2 << 20
COLLAPSE = 25  # MADV_COLLAPSE
MAP_FIXED = 0x10


def why_no_huge_page():
    """Tries it on memory of this process: a kernel before 6.1 cannot, and others may have no huge
    pages left."""
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


def bytes_in_huge_pages(smaps):
    """Returns how many bytes of the rings in `smaps` (a /proc/PID/smaps) are in huge pages."""
    ring, found = False, 0
    for line in smaps.splitlines():
        name, *words = line.split()
        if not name.endswith(":"):
            ring = "memfd:weft-ring" in line
        elif ring and name == "ShmemPmdMapped:":
            found += int(words[0]) * 1024
    return found
