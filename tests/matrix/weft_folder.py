# SPDX-License-Identifier: Apache-2.0
"""A folder in which libweft.so finds a control file, agent.sock with a listener, and the FIFO
agent.names.

It is an agent for tests: it enables events by writing the control file (lib/abi/control.h), keeps
every ring set that it gets, and reads them by pread when the programs have ended (lib/abi/ring.h).
It is written from the headers, not from the library's or the reader's code. A thread of its own
accepts.
"""

import contextlib
import os
import socket
import struct
import threading

CONTROL_MAGIC = 0x4C544357
RING_MAGIC = 0x474E5257
BELL_MAGIC = 0x4C4C4257
WORDS = 16384
WORDS_OFFSET = 4096
ARENA_OFFSET = WORDS_OFFSET + 4 * WORDS
ARENA_SIZE = 4 * 1024 * 1024
CLOCKS = {"tsc": 1, "monotonic": 2}
MODES = {"discard": 0, "overwrite": 1}
REASONS = ("full", "memory", "nested", "too_large", "contended")
STATEDUMP = 1  # a channel's flag
DUMP_PROVIDER = "lttng_ust_statedump:"


def fnv1a64(data):
    h = 14695981039346656037
    for byte in data:
        h = ((h ^ byte) * 1099511628211) & (2**64 - 1)
    return h


def ruleset(generation, patterns, mode, subbuf_shift, subbufs_shift, contexts, memory_budget=0):
    """Writes one channel, and one rule per pattern. A context is its id, or (PERF_THREAD, type,
    config)."""
    channels_offset = 40
    rules_offset = channels_offset + 64
    contexts_offset = rules_offset + 40 * len(patterns)
    text_offset = contexts_offset + 24 * len(contexts)
    flags = STATEDUMP if any(p.startswith(DUMP_PROVIDER) for p in patterns) else 0
    channel = struct.pack("<QIIIIIIIIIIQQ", 0x1234, MODES[mode], subbuf_shift, subbufs_shift, flags,
                          len(contexts), contexts_offset if contexts else 0, 0, 0, 0, 0,
                          memory_budget, 0)
    rules, text = b"", b""
    for pattern in patterns:
        rules += struct.pack("<IiiIIIIIQ", 0, -1, 15, text_offset + len(text), 0, 0, 0, 0, 0)
        text += pattern.encode() + b"\0"
    triples = [c if isinstance(c, tuple) else (c, 0, 0) for c in contexts]
    specs = b"".join(struct.pack("<HHIQII", c, 0, 0, config, kind, 0) for c, kind, config in triples)
    body = channel + rules + specs + text
    body += bytes(-len(body) % 8)
    tail = struct.pack("<IIIIII", generation, 1, channels_offset, len(patterns),
                       rules_offset if patterns else 0, 0) + body
    return struct.pack("<IIQ", CONTROL_MAGIC, 16 + len(tail), fnv1a64(tail)) + tail


class RingSet:
    """A descriptor of a ring set, read when its writers have ended."""

    def __init__(self, fd):
        self.fd = fd
        header = os.pread(fd, 152, 0)
        if len(header) != 152:
            raise ValueError("a ring set without a header")
        (magic, major, _, _, features, self.total, self.slots_at, self.descriptions_at, size,
         self.data_at, self.slot_count, self.slot_size, self.slot_shift, self.subbuf_shift,
         self.mode, self.clock, self.channel, self.instance, self.pid) = struct.unpack_from(
             "<IHHIIQQQQQIIIIIIQQI", header)
        if magic != RING_MAGIC or major != 1 or features != 0:
            raise ValueError("no ring set")
        self.descriptions_size = size
        self.times = []  # of the first and the last record of each sub-buffer that counts() found
        self.dumped = {}  # name: records of the statedump that counts() found

    def _dump_names(self):
        """Returns the names of the statedump's events by id."""
        used = min(struct.unpack("<Q", os.pread(self.fd, 8, 112))[0], self.descriptions_size)
        bytes_, at, names = os.pread(self.fd, used, self.descriptions_at), 0, {}
        while at < len(bytes_):
            size, event = struct.unpack_from("<IH", bytes_, at)
            name = bytes_[at + 32:bytes_.index(b"\0", at + 32)].decode()
            if name.startswith(DUMP_PROVIDER):
                names[event] = name.removeprefix(DUMP_PROVIDER)
            at += (size + 7) & ~7
        return names

    def slot(self, index):
        head, closed, _, *rest = struct.unpack(
            "<QII14Q", os.pread(self.fd, 128, self.slots_at + index * self.slot_size))
        return head, rest[:5], rest[7]  # lock

    def counts(self):
        """Returns (recorded, {reason: discarded}), after looking at every record that is still
        there. Records of the statedump, which no program counts, are in `dumped`."""
        recorded = 0
        discarded = [0] * len(REASONS)
        self.names = self._dump_names()
        self.dumped = dict.fromkeys(self.names.values(), 0)
        for index in range(self.slot_count):
            head, reasons, _ = self.slot(index)
            recorded += self._walk(index, head)
            discarded = [a + b for a, b in zip(discarded, reasons)]
        return recorded - sum(self.dumped.values()), dict(zip(REASONS, discarded))

    def _walk(self, index, head):
        base = self.data_at + (index << self.slot_shift)
        offset = head & 0xFFFFFFFF
        size = 1 << self.subbuf_shift
        start = offset & ~(size - 1)
        ring = os.pread(self.fd, 1 << self.slot_shift, base)
        sequence, before = struct.unpack_from("<QQ", ring, start)
        total = before + (head >> 32)
        # Backwards through the sub-buffers that are still there; their records are continuous.
        time = None
        expected = total
        for back in range(min(sequence + 1, len(ring) // size)):
            at = (start - back * size) % len(ring)
            number, records_before = struct.unpack_from("<QQ", ring, at)
            if number != sequence - back:
                raise ValueError(f"slot {index}: sub-buffer {number} instead of {sequence - back}")
            end = offset if back == 0 else at + size
            count, first, last = self._records(ring, at + 32, end, back == 0)
            if count:
                self.times += [first, last]
            if records_before + count != expected:
                raise ValueError(f"slot {index}: {count} records behind {records_before}, "
                                 f"not {expected}")
            if count and time is not None and last > time:
                raise ValueError(f"slot {index}: time goes back")
            time = first if count else time
            expected = records_before
        return total

    def _records(self, ring, at, end, current):
        count, first, last = 0, None, 0
        while at < end:
            size, event, _, time = struct.unpack_from("<IHHQ", ring, at) if at + 16 <= end else (
                struct.unpack_from("<I", ring, at)[0], 0, 0, 0)
            if size == 0 and not current:
                break
            if size < 16 or at + size > end:
                raise ValueError(f"a record of {size} bytes at {at}")
            if time < last:
                raise ValueError("time goes back")
            first = time if first is None else first
            last = time
            count += 1
            if event in self.names:
                self.dumped[self.names[event]] += 1
            at += (size + 7) & ~7
        return count, first, last


class WeftFolder:
    """Use as a context manager; `path` goes into WEFT_DIR."""

    def __init__(self, path, clock="tsc", slots=None):
        self.path = path
        self.clock = clock
        self.slots = slots or os.cpu_count()
        self.rings = {}  # instance: RingSet
        self.strange = []  # what came and was neither a ring set nor a name
        self.named = set()  # instances of ring sets that a process could not make or announce
        self._lock = threading.Lock()

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        os.chmod(self.path, 0o755)
        self._write(0)
        self._stop, stopper = os.pipe()
        self._stopper = stopper
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(os.path.join(self.path, "agent.sock"))
        os.chmod(os.path.join(self.path, "agent.sock"), 0o666)
        self._listener.listen(4096)
        names = os.path.join(self.path, "agent.names")
        os.mkfifo(names)
        os.chmod(names, 0o666)
        self._names = os.open(names, os.O_RDWR | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.settle()
        for ring in self.rings.values():
            os.close(ring.fd)
        for name in ("local.ctl", "agent.sock", "agent.names"):
            os.unlink(os.path.join(self.path, name))
        os.rmdir(self.path)

    def enable(self, *patterns, mode="discard", subbuf_shift=16, subbufs_shift=3, contexts=(),
               memory_budget=0):
        rules = ruleset(1, patterns, mode, subbuf_shift, subbufs_shift, contexts, memory_budget)
        with open(os.path.join(self.path, "local.ctl"), "r+b") as control:
            control.seek(ARENA_OFFSET)
            control.write(rules)
            control.flush()
            self._write(ARENA_OFFSET, control)
            control.seek(WORDS_OFFSET)
            control.write(struct.pack("<I", 1) * WORDS)

    def _write(self, rules_at, control=None):
        total = ARENA_OFFSET + ARENA_SIZE
        header = struct.pack("<IHHIIQQQQIIIIQ", CONTROL_MAGIC, 1, 0, 136, 0, total, WORDS_OFFSET,
                             ARENA_OFFSET, ARENA_SIZE, WORDS, self.slots, CLOCKS[self.clock], 0,
                             rules_at) + bytes(64)
        if control is None:
            with open(os.path.join(self.path, "local.ctl"), "wb") as new:
                new.truncate(total)
                new.write(header)
            return
        control.seek(0)
        control.write(header)
        control.flush()

    def _accept(self):
        self._listener.setblocking(False)
        import select
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        poller.register(self._stop, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self._listener.fileno() in ready:
                self._take_one()
            elif self._stop in ready:
                return

    def _take_one(self):
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        with connection:
            connection.settimeout(200)
            try:
                message, fds, _, _ = socket.recv_fds(connection, 64, 4)
                if not message and not fds:
                    return  # killed between connect and sendmsg
                magic, kind = struct.unpack_from("<II", message)
                if magic != BELL_MAGIC or kind != 1 or len(fds) != 1:
                    raise ValueError(f"a doorbell with kind {kind} and {len(fds)} descriptors")
                ring = RingSet(fds[0])
            except (OSError, ValueError, struct.error) as error:
                self.strange.append(str(error))
                return
        with self._lock:
            self.rings[ring.instance] = ring

    def settle(self):
        """Call it when all processes have ended: takes what is still in the socket's queue, then
        stops."""
        if self._thread is None:
            return
        os.write(self._stopper, b"x")
        self._thread.join()
        self._thread = None
        self._listener.close()
        os.close(self._stop)
        os.close(self._stopper)
        with contextlib.suppress(BlockingIOError):
            while True:
                magic, kind, instance = struct.unpack_from("<IIQ", os.read(self._names, 32))
                if magic != BELL_MAGIC or kind != 2:
                    self.strange.append(f"a name of kind {kind}")
                self.named.add(instance)
        os.close(self._names)

    def counts(self):
        """Returns (recorded, {reason: count}) of all ring sets. Call it only after settle()."""
        recorded, discarded = 0, dict.fromkeys(REASONS, 0)
        for ring in self.rings.values():
            more, reasons = ring.counts()
            recorded += more
            for reason, count in reasons.items():
                discarded[reason] += count
        return recorded, discarded
