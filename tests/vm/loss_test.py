# SPDX-License-Identifier: Apache-2.0
"""All CPUs of a guest emit more events than buffers take, through the real consumer and relay. The
program, the ring, weft, the relay and babeltrace2 must agree on the exact number of events that
were not delivered."""

import re
import unittest

from tests.vm import storm
from tests.vm.storm import LocalStormTest, NodeStormTest

CALLS = 20_000  # of each thread: many times what the buffers hold
SMALL = {"size": "4Ki", "count": 2}


class Losses:
    """Part of a class that has record_storm: counts, and what is in the trace."""

    def test_discarded(self):
        counts, _ = self.record_storm()
        self.assert_discarded(counts)

    def test_overwritten(self):
        self.assert_overwritten(*self.record_storm(mode="overwrite"))

    def test_a_snapshot(self):
        self.assert_newest(*self.record_storm(mode="overwrite", output="snapshot"))

    def assert_discarded(self, counts):
        self.assertGreater(counts["discarded"]["full"], 0, "the buffers are too large")
        self.assertEqual(counts["overwritten"], 0, counts)
        self.assertFalse(counts["lost"], counts)

    def assert_overwritten(self, counts, seen):
        """Checks that no event is missing for another reason, and that the last calls are there."""
        self.assertGreater(counts["overwritten"], 0, "the buffers are too large")
        self.assertEqual(counts["discarded"], {}, counts)
        self.assertEqual({numbers[-1] for numbers in seen.entries.values()}, {CALLS - 1})
        self.assertEqual(len(seen.entries), storm.CPUS)

    def assert_newest(self, counts, seen):
        """Checks assert_overwritten, and that none between the newest events is missing."""
        self.assert_overwritten(counts, seen)
        for numbers in seen.entries.values():
            self.assertEqual(numbers, list(range(numbers[0], CALLS)))


class LocalLossTest(LocalStormTest, Losses):
    def record_storm(self, **buffer):
        command = storm.program(self.report, CALLS)
        weft, _, ring = self.start_storm(command=command, **SMALL, **buffer)
        self.finish(weft)
        counts, seen = self.counts(), storm.seen_in(self.folder / "trace")
        storm.assert_same_books(self, counts, seen, ring, storm.made(self.report))
        return counts, seen


class NodeLossTest(NodeStormTest, Losses):
    def record_storm(self, mode="discard", output="stream"):
        spec = {"buffer": {**SMALL, "mode": mode}, "output": {"mode": output}}
        ring = self.start_storm(storm.program(self.report, CALLS), **spec)
        counts = self.end_storm(**spec)
        seen = storm.seen_in(self.folder / "relay/reds")
        storm.assert_same_books(self, counts, seen, ring, storm.made(self.report))
        self.assertEqual(self.at_relay("weft_events_delivered_total"), counts["delivered"])
        self.assertEqual(self.at_relay("weft_relay_reported_discarded_total"), sum(counts["discarded"].values()))
        self.stop_node()
        return counts, seen

    def at_relay(self, name):
        samples = re.findall(rf"^{name}\{{.*\}} (\S+)$", self.metrics(self.relay_http), re.MULTILINE)
        return sum(map(float, samples))


if __name__ == "__main__":
    unittest.main()
