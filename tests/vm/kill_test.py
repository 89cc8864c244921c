# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of weft's processes while the kernel is recorded, in a guest, at random moments: the program's own books, the
ring's, weft's and babeltrace2's agree in every event."""

import os
import pathlib
import random
import signal
import time
import unittest

from tests.local.weft_local import is_running
from tests.vm import storm
from tests.vm.node import children_of, name_of
from tests.vm.storm import LocalStormTest, NodeStormTest

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MOST_CALLS = 1_000_000  # of a program that ends because its file is gone
ROUNDS = 4
SMALL = {"size": "4Ki", "count": 2}


class Killer:
    """Parts of both kinds of tests: a random moment, and a program that goes on until it is told to
    end."""

    def prepare(self):
        seed = random.randrange(2**32)
        self.random = random.Random(seed)
        print(f"seed {seed}", flush=True)
        self.hold = self.folder / "hold"
        self.hold.touch()
        self.command_line = storm.program(self.report, MOST_CALLS, 3000, self.hold)

    def some_time(self):
        time.sleep(self.random.uniform(0, 0.4))

    def kill_keeper(self, keeper, agent):
        """Kills the keeper at some moment. Its agent, which is the program `agent`, and its
        consumer end as well."""
        # The keeper starts anew what did not answer in time.
        self.wait_for(lambda: sorted(map(name_of, children_of(keeper))) == sorted([agent, "weft-consumer"]))
        others = children_of(keeper)
        self.some_time()
        os.kill(keeper, signal.SIGKILL)
        for pid in (keeper, *others):
            self.wait_for(lambda pid=pid: not is_running(pid), "a process stays")

    def assert_beginning(self, seen, ring):
        """Checks that each CPU has all that was taken out of the ring, nothing that was not in it,
        and no gap."""
        storm.assert_prefix(self, seen)
        self.assertEqual(seen.discarded, 0)
        for cpu, slot in enumerate(ring.slots()):
            self.assertLessEqual(ring.taken(cpu), seen.events.get(cpu, 0))
            self.assertLessEqual(seen.events.get(cpu, 0), slot.committed)


class LocalKillTest(LocalStormTest, Killer):
    """Tests weft record: kills of the consumer, the agent, or both; and of the keeper, with which
    all end."""

    def setUp(self):
        super().setUp()
        self.prepare()

    def begin(self, **buffer):
        weft, keeper, ring = self.start_storm(command=self.command_line, **buffer)
        self.wait_for(lambda: ring.committed() > 100)
        return weft, keeper, ring

    def kill_again_and_again(self, *names, until=lambda ring: True, **buffer):
        weft, _, ring = self.begin(**buffer)
        for _ in range(ROUNDS):
            for name in names:
                before = ring.emitted()
                self.some_time()
                self.kill(weft, name)
                self.wait_for(lambda: ring.emitted() > before)
        self.wait_for(lambda: until(ring) or self.kill(weft, names[0]))
        self.hold.unlink()
        self.finish(weft)
        counts = self.counts()
        self.assertEqual((counts["lost"], counts["overwritten"], counts["tail_unknown"]), ({}, 0, 0), counts)
        seen = storm.seen_in(self.folder / "trace")
        storm.assert_same_books(self, counts, seen, ring, storm.made(self.report))
        self.assertGreaterEqual(self.summary()["recoveries"], 1)
        return counts

    def test_consumer(self):
        counts = self.kill_again_and_again("weft-consumer")
        self.assertEqual(counts["discarded"], {})

    def test_agent(self):
        counts = self.kill_again_and_again("weft-agent")
        self.assertEqual(counts["discarded"], {})

    def test_consumer_with_buffers_that_run_full(self):
        counts = self.kill_again_and_again("weft-consumer", until=lambda ring: "full" in ring.discarded(), **SMALL)
        self.assertGreater(counts["discarded"]["full"], 0)

    def test_agent_and_consumer(self):
        self.kill_again_and_again("weft-agent", "weft-consumer", **SMALL)

    def test_keeper(self):
        """The processes that are left write what they have. What else was in the ring is unknown,
        and weft says so. The program goes on undisturbed, and nothing is left behind."""
        groups = set(CGROUPS.rglob("*/"))
        weft, keeper, ring = self.begin()
        folder = pathlib.Path(f"/proc/{keeper}/cmdline").read_text().split("\0")[2]
        self.kill_keeper(keeper, "weft-agent")
        self.some_time()
        self.hold.unlink()
        _, said = self.finish(weft, status=123)
        self.assertIn("weft-keeper ended, and the recording with it", said)
        calls = storm.made(self.report)
        seen = storm.seen_in(self.folder / "trace")
        self.assert_beginning(seen, ring)
        for slot in ring.slots():
            self.assertEqual(slot.discarded, {})
        self.assertLessEqual(ring.committed(), 2 * sum(calls.values()))
        self.assertFalse(pathlib.Path(folder).exists())
        self.assertEqual(set(CGROUPS.rglob("*/")), groups)


class NodeKillTest(NodeStormTest, Killer):
    """Tests a node of a cluster, with a relay."""

    def setUp(self):
        super().setUp()
        self.prepare()

    def begin(self, **spec):
        ring = self.start_storm(self.command_line, **spec)
        self.wait_for(lambda: ring.committed() > 100)
        return ring

    def finish_storm(self, **spec):
        self.hold.unlink()
        return self.end_storm(**spec)

    def kill_again_and_again(self, *kills, **spec):
        ring = self.begin(**spec)
        for _ in range(ROUNDS):
            for kill in kills:
                before = ring.emitted()
                self.some_time()
                kill()
                self.wait_for(lambda: ring.emitted() > before)
        counts = self.finish_storm(**spec)
        self.assertEqual((counts["lost"], counts["overwritten"]), (0, 0), counts)
        seen = storm.seen_in(self.folder / "relay/reds")
        storm.assert_same_books(self, counts, seen, ring, storm.made(self.report))
        self.stop_node()
        return counts

    def kill_consumer(self):
        self.kill_daemon("weft-consumer")

    def restart_relay(self):
        self.kill_relay()
        self.some_time()
        self.start_relay()

    def test_consumer(self):
        self.kill_again_and_again(self.kill_consumer)

    def test_relay(self):
        self.kill_again_and_again(self.restart_relay)

    def test_all_of_them_with_buffers_that_run_full(self):
        self.kill_again_and_again(self.kill_agent, self.kill_consumer, self.restart_relay,
                                  buffer=SMALL)

    def test_keeper(self):
        """Its ring ends with the keeper. Records that were taken out of the ring are at the relay.
        A stream, but no number of events, counts that there were more. The next keeper begins
        another ring, with complete books."""
        ring = self.begin()
        self.wait_for(lambda: any(slot.tail for slot in ring.slots()))
        self.kill_keeper(self.keeper.pid, "weft-node-agent")
        self.keeper.wait()
        self.some_time()
        first = self.traces()
        self.assertEqual(len(first), 1)
        next_ring = self.start_recording()
        self.wait_for(lambda: next_ring.committed() > 100)
        self.finish_storm()
        seen = storm.seen_in(*first)
        self.assertGreater(seen.total, 0)
        self.assert_beginning(seen, ring)
        self.assertLess(sum(slot.committed for slot in ring.slots()), 2 * sum(storm.made(self.report).values()))
        self.assert_rest(storm.seen_in(*(self.traces() - first)), next_ring)
        self.assertIn('weft_streams_tail_unknown_total{namespace="reds",trace="t"} 1\n', self.metrics())
        self.stop_node()

    def test_an_end_in_order(self):
        """When the agent's pod is deleted, the ring is first read to its end, and nothing is lost. The next life adds
        to the counts."""
        ring = self.begin()
        self.stop_node()
        first = self.traces()
        self.assertEqual(len(first), 1)
        next_ring = self.start_recording()
        self.wait_for(lambda: next_ring.committed() > 100)
        counts = self.finish_storm()
        before, after = storm.seen_in(*first), storm.seen_in(*(self.traces() - first))
        self.assertEqual((ring.discarded(), before.discarded), ({}, 0))
        self.assertEqual(before.total, ring.committed())
        storm.assert_prefix(self, before)
        self.assert_rest(after, next_ring)
        self.assertEqual(counts, {"recorded": before.total + after.total, "delivered": before.total + after.total,
                                  "overwritten": 0, "lost": 0, "discarded": {}})
        self.assertNotIn('weft_streams_tail_unknown_total{namespace="reds",trace="t"} 1', self.metrics())
        self.stop_node()

    def traces(self):
        return {file.parent for file in (self.folder / "relay/reds").rglob("metadata")}

    def assert_rest(self, seen, ring):
        """Checks that the ring recorded, of each thread, all calls from some call to the last
        one."""
        calls = storm.made(self.report)
        self.assertEqual((ring.discarded(), seen.discarded), ({}, 0))
        self.assertEqual(ring.committed(), seen.total)
        for thread, numbers in seen.entries.items():
            self.assertEqual(numbers, list(range(numbers[0], calls[thread])))


if __name__ == "__main__":
    unittest.main()
