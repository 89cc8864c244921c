# SPDX-License-Identifier: Apache-2.0
"""The books of a ring of weft.ko, from its own words (lib/abi/ring.h): what it committed and
discarded, also after all of weft's processes are gone. A process that has one of these has a
descriptor of the ring."""

import ctypes
import dataclasses
import os
import pathlib
import struct

RING = "anon_inode:[weft-ring]"
PIDFD_GETFD = 438  # the same on all machines
HEADER = struct.Struct("<IHHII5QIIIII")  # struct weft_ring_header, up to `mode`
SLOT = struct.Struct("<QII10Q")          # struct weft_slot, up to `missed`
SUBBUF = struct.Struct("<QQ")            # struct weft_subbuf_header
SUBBUF_HEADER = 32  # its reserved words too
REASONS = ("full", "memory", "nested", "too_large", "contended", "missed")


@dataclasses.dataclass
class Slot:
    """The slot of one CPU. Head and tail are offsets in the ring and positions
    (docs/formats/ring.md)."""
    committed: int
    discarded: dict
    head: int
    tail: int
    data: int  # where its ring begins


class RingBooks:
    def __init__(self, descriptor):
        self.descriptor = descriptor
        header = HEADER.unpack(self.read(0, HEADER.size))
        self.slots_offset, self.data_offset = header[6], header[9]
        self.slot_count, self.slot_size, self.slot_shift, self.subbuf_shift, self.mode = header[10:]

    @classmethod
    def of_process(cls, pid):
        """Returns the books of the one ring that a process has open. None: it has no ring."""
        for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(file) == RING:
                    return cls(copy(pid, int(file.name)))
            except OSError:
                continue  # closed meanwhile, as the process may be
        return None

    def close(self):
        os.close(self.descriptor)

    def read(self, offset, size):
        data = os.pread(self.descriptor, size, offset)
        if len(data) != size:
            raise EOFError(f"{len(data)} bytes of {size} at {offset}")
        return data

    def slots(self):
        """Returns the slot of each CPU."""
        return [self.slot(number) for number in range(self.slot_count - 1)]

    def slot(self, number):
        words = SLOT.unpack(self.read(self.slots_offset + number * self.slot_size, SLOT.size))
        head = words[0]
        data = self.data_offset + (number << self.slot_shift)
        offset = head & 0xffffffff
        begin = offset >> self.subbuf_shift << self.subbuf_shift
        _, before = SUBBUF.unpack(self.read(data + begin, SUBBUF.size))
        discarded = {reason: n for reason, n in zip(REASONS, words[3:8] + words[12:13]) if n != 0}
        return Slot(before + (head >> 32), discarded, offset, words[9], data)

    def committed(self):
        return sum(slot.committed for slot in self.slots())

    def emitted(self):
        return self.committed() + sum(self.discarded().values())

    def taken(self, number):
        """Returns the number of records that a CPU's reader has taken, which is the number before
        its tail. It is not known if the writer went round over them."""
        slot = self.slot(number)
        begin = slot.tail >> self.subbuf_shift << self.subbuf_shift
        data = slot.data + begin % (1 << self.slot_shift)
        sequence, records = SUBBUF.unpack(self.read(data, SUBBUF.size))
        if sequence != slot.tail >> self.subbuf_shift:
            raise ValueError(f"sub-buffer {sequence}, tail {slot.tail}")
        at = SUBBUF_HEADER
        while at < slot.tail - begin:
            size = int.from_bytes(self.read(data + at, 4), "little")
            if size == 0:
                break
            records += 1
            at += (size + 7) & ~7
        return records

    def discarded(self):
        total = {}
        for slot in self.slots():
            for reason, count in slot.discarded.items():
                total[reason] = total.get(reason, 0) + count
        return total


def copy(pid, descriptor):
    """Makes a descriptor of this process from one of another process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        found = libc.syscall(PIDFD_GETFD, pidfd, descriptor, 0)
        if found < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return found
    finally:
        os.close(pidfd)
