#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rings stay under a twentieth of their container's memory limit: what the library makes of what is left
in the memory pool, and `weft record` in a control group with a limit."""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from tests.local.weft_local import BUILD, EMITTER, PATIENCE, LocalTest
from tests.matrix.weft_folder import WeftFolder

LIBRARY = BUILD / "lib" / "libweft.so"
PAGE = 4096
BUDGET = (16 << 20) // 20 // PAGE * PAGE  # of a container of 16 MiB; a byte in its pool is a page
EVENTS = 20000


class Pool:
    """The memory pool of a WeftFolder, with so many units in it; `held`: an agent has it open."""

    def __init__(self, folder, units, held=True):
        self.path = os.path.join(folder.path, "local.mem")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self.put(units)
        if not held:
            self.close()

    def put(self, units):
        os.write(self.fd, b"." * units)

    def left(self):
        try:
            return len(os.read(self.fd, 65536))
        except BlockingIOError:
            return 0

    def close(self):
        os.close(self.fd)
        self.fd = None


class Library(unittest.TestCase):
    """Runs two threads of the emitter, with 20,000 events each, on a machine with two slots."""

    def run_emitter(self, units, *options, held=True, meanwhile=None, emitted=2 * EVENTS):
        """Returns the ring sets that were made, the counts, and what is left in the pool."""
        with tempfile.TemporaryDirectory(prefix="weft-memory-") as parent, \
                WeftFolder(os.path.join(parent, "weft"), slots=2) as folder:
            folder.enable("*", subbuf_shift=14, subbufs_shift=2, memory_budget=BUDGET)
            pool = Pool(folder, units, held) if units is not None else None
            env = dict(os.environ, WEFT_DIR=folder.path, LD_PRELOAD=str(LIBRARY))
            program = subprocess.Popen([EMITTER, "--events", str(EVENTS), "--threads", "2", *options], env=env)
            if meanwhile:
                meanwhile(folder, pool)
            self.assertEqual(program.wait(PATIENCE), 0)
            folder.settle()
            left = pool.left() if pool and pool.fd is not None else None
            if pool:
                os.unlink(pool.path)
                if pool.fd is not None:
                    pool.close()
            self.assertEqual(folder.strange, [])
            recorded, discarded = folder.counts()
            self.assertEqual(recorded + sum(discarded.values()), emitted)
            used = sum(os.fstat(ring.fd).st_blocks * 512 for ring in folder.rings.values())
            return list(folder.rings.values()), recorded, discarded, left, used

    def test_takes_what_the_channel_asks_for_where_there_is_room(self):
        (ring,), recorded, _, left, used = self.run_emitter(204)
        self.assertEqual((ring.slot_count, ring.subbuf_shift, ring.slot_shift), (3, 14, 16))
        self.assertLessEqual(used, (204 - left) * PAGE)
        self.assertGreater(recorded, 0)

    def test_takes_at_most_half_of_what_is_left(self):
        for units, expected in ((100, (3, 14, 15)), (20, (1, 12, 14)), (10, (1, 12, 13))):
            with self.subTest(units):
                (ring,), recorded, discarded, left, used = self.run_emitter(units)
                self.assertEqual((ring.slot_count, ring.subbuf_shift, ring.slot_shift), expected)
                self.assertGreaterEqual(left, units // 2)
                self.assertLessEqual(used, (units - left) * PAGE)
                self.assertGreater(recorded, 0)
                self.assertEqual(discarded["memory"], 0)

    def test_counts_what_no_memory_is_left_for(self):
        (ring,), recorded, discarded, left, used = self.run_emitter(3)
        self.assertEqual(ring.descriptions_size, 0)
        self.assertEqual((recorded, discarded["memory"], left), (0, 2 * EVENTS, 3))
        self.assertLessEqual(used, PAGE)

    def test_makes_the_least_ring_where_no_agent_holds_the_pool(self):
        for units, held in ((100, False), (None, True)):
            with self.subTest(units=units, held=held):
                (ring,), recorded, discarded, _, used = self.run_emitter(units, held=held)
                self.assertEqual((ring.slot_count, ring.subbuf_shift, ring.slot_shift), (1, 12, 13))
                self.assertGreater(recorded, 0)
                self.assertEqual(discarded["memory"], 0)
                self.assertLessEqual(used, 5 * PAGE)

    def test_records_again_once_there_is_memory(self):
        def give(folder, pool):
            while not folder.rings:
                pass
            pool.put(100)
        rings, recorded, discarded, _, _ = self.run_emitter(0, "--pause-us", "100", meanwhile=give)
        self.assertEqual([ring.descriptions_size == 0 for ring in rings], [True, False])
        self.assertGreater(recorded, 0)
        self.assertGreater(discarded["memory"], 0)

    def test_many_processes_share_it(self):
        rings, recorded, discarded, left, used = self.run_emitter(183, "--children", "12",
                                                                emitted=13 * 2 * EVENTS)
        self.assertEqual(len(rings), 13)
        self.assertLessEqual(used, (183 - left) * PAGE + 13 * PAGE)
        self.assertGreater(discarded["memory"], 0)
        self.assertGreater(recorded, 0)


class LimitedGroup:
    """A control group with a memory limit, below this process's own, of version 1 or 2."""

    def __init__(self, limit):
        lines = pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
        one = pathlib.Path("/sys/fs/cgroup/memory")
        self.is_1 = "memory" in paths and (one / "memory.limit_in_bytes").exists() or (
            "memory" in paths and one.is_dir())
        parent = pathlib.Path(f"{one}{paths['memory']}") if self.is_1 else pathlib.Path(
            f"/sys/fs/cgroup{paths.get('', '/')}")
        self.folder = parent / f"weft-memory-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            (self.folder / ("memory.limit_in_bytes" if self.is_1 else "memory.max")).write_text(str(limit))
        except OSError:
            self.folder.rmdir()
            raise

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def shmem(self):
        words = (self.folder / "memory.stat").read_text(encoding="utf-8").split()
        return int(words[words.index("shmem") + 1])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to make a control group")
class Local(LocalTest):

    def test_the_largest_buffers_stay_under_a_twentieth_of_the_limit(self):
        limit = 256 << 20
        try:
            group = LimitedGroup(limit)
        except OSError as error:
            self.skipTest(f"no control group with a memory limit can be made: {error}")
        self.addCleanup(group.folder.rmdir)
        before = peak = group.shmem()
        weft = self.start("-e", "emitter:*", "--subbuf-size", "64Mi", "--subbufs", "16",
                          program=self.emitter("--events", "1000000", "--threads", "2", "--children", "3"),
                          preexec_fn=group.enter)
        while weft.poll() is None:
            peak = max(peak, group.shmem())
            time.sleep(0.01)
        self.finish(weft)
        # Besides rings, the memory holds the session's files and journals if their folder is in
        # memory.
        self.assertGreater(peak - before, 1 << 20)
        self.assertLess(peak - before, limit // 20 + (1 << 20))
        counts = self.counts()
        self.assertEqual(counts["emitted"], self.emitted(), counts)
        self.assertEqual(counts["lost"], {})


if __name__ == "__main__":
    unittest.main()
