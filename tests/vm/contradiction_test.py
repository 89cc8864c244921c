# SPDX-License-Identifier: Apache-2.0
"""A ring of weft.ko contradicts itself (kmod/contradict makes it do so) while a storm of system
calls is recorded. weft record and a node of a cluster report it, and all books agree up to that
point."""

import pathlib
import subprocess
import unittest

from tests.vm import storm
from tests.vm.storm import KERNEL, MODULE, LocalStormTest, NodeStormTest

MANY = 10**9  # calls: until the program is told to end
FEW = 400  # more than a sub-buffer of 16 KiB takes
PAUSE_US = 100
POSITION = 1
BUFFER = {"size": "64Ki", "count": 16}
PARAMETERS = pathlib.Path("/sys/module/contradict/parameters")
STOPPED = f"weft.ko: the session stopped: internal contradiction {POSITION}, met 1 times"


class Contradictions:
    """Part of a test with weft.ko: makes contradictions."""

    def load_contradict(self):
        subprocess.run(["insmod", MODULE.with_name("contradict.ko")], check=True)
        self.addCleanup(subprocess.run, ["rmmod", "contradict"], check=True)

    def contradict(self):
        """Returns when it is done."""
        (PARAMETERS / "what").write_text(f"{POSITION}\n")
        self.wait_for(lambda: (PARAMETERS / "what").read_text() == "0\n")

    def assert_stopped_books(self, counts, seen, ring):
        """Checks that each CPU has all calls up to one of them; later calls are counted as long as
        a ring counted."""
        storm.assert_same_books_of_weft(self, counts, seen, ring)
        storm.assert_prefix(self, seen)
        self.assertEqual({reason for reason, n in counts["discarded"].items() if n}, {"contended"}, counts)
        self.assertEqual(counts["delivered"], counts["recorded"], counts)
        self.assertGreater(counts["delivered"], 0)
        self.assertLessEqual(ring.emitted(), 2 * sum(storm.made(self.report).values()))


class LocalContradictionTest(LocalStormTest, Contradictions):
    def setUp(self):
        super().setUp()
        self.load_contradict()
        self.hold = self.folder / "hold"
        self.hold.touch()

    def storm_that_contradicts(self, *options):
        """Goes on until `hold` is gone."""
        command = storm.program(self.report, MANY, PAUSE_US, self.hold)
        weft, _, ring = self.start_storm(*options, command=command, **BUFFER)
        self.wait_for(lambda: ring.committed() > 0)
        self.contradict()
        return weft, ring

    def finish_stopped(self, weft, ring):
        _, said = self.finish(weft, 123)
        self.assertIn(f'weft: Trace "storm": {STOPPED}\n', said)
        counts = self.counts()
        self.assertEqual((counts["tail_unknown"], counts["lost"]), (1, {}), counts)
        self.assertEqual(self.summary()["notices"].count(f'Trace "storm": {STOPPED}'), 1)
        self.assert_stopped_books(counts, storm.seen_in(self.folder / "trace"), ring)
        shown, _ = self.run_view(self.folder / "trace")
        self.assertEqual(len(shown.splitlines()), counts["delivered"])
        return said

    def test_is_reported(self):
        weft, ring = self.storm_that_contradicts()
        self.hold.unlink()
        self.assertIn("weft: the end of 1 ring set is not known\n", self.finish_stopped(weft, ring))

    def test_is_reported_by_an_agent_that_comes_later(self):
        weft, ring = self.storm_that_contradicts()
        self.kill(weft, "weft-agent")
        self.hold.unlink()
        self.finish_stopped(weft, ring)

    def test_is_reported_where_the_program_ends_at_once(self):
        for _ in range(2):
            with self.subTest():
                (PARAMETERS / "what").write_text(f"{POSITION}\n")
                command = storm.program(self.report, FEW)
                weft, _, ring = self.start_storm("--quiet", command=command, size="16Ki", count=16)
                self.finish_stopped(weft, ring)
            subprocess.run(["rm", "-r", self.folder / "trace", self.folder / "gate"], check=True)


class NodeContradictionTest(NodeStormTest, Contradictions):
    def test_is_reported(self):
        hold = self.folder / "hold"
        hold.touch()
        spec = {"buffer": BUFFER}
        ring = self.start_storm(storm.program(self.report, MANY, PAUSE_US, hold), **spec)
        self.load_contradict()
        self.wait_for(lambda: ring.committed() > 0)
        self.contradict()
        self.assertEqual(self.wait_condition("reds", "KernelTracing", "False", "Stopped"), STOPPED)
        self.wait_condition("reds", "Ready", "False", "Stopped")
        # A session that begins now has all.
        blue = self.tenant("blues", "blue")
        self.api.put("tracesessions", storm.order("blues", self.relay, KERNEL, **spec))
        self.wait_condition("blues", "KernelTracing", "True", "Recording")
        report = self.folder / "blue"
        self.assertEqual(blue.run(*storm.program(report, FEW)).wait(storm.PATIENCE), 0)
        whole = self.end("blues", KERNEL, **spec)
        self.assertEqual(whole["delivered"], 2 * sum(storm.made(report).values()), whole)
        hold.unlink()
        counts = self.end_storm(**spec)
        self.assert_stopped_books(counts, storm.seen_in(self.folder / "relay/reds"), ring)
        self.stop_node()


if __name__ == "__main__":
    unittest.main()
