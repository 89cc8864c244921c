# SPDX-License-Identifier: Apache-2.0
"""Tests what benches do with figures: targets, --gate, --smoke, and bench/ust's check that all was
recorded."""

import contextlib
import fnmatch
import io
import json
import pathlib
import re
import tempfile
import unittest

from bench import report
from bench.ust import tracers

TOP = pathlib.Path(__file__).resolve().parent.parent


class ReportTest(unittest.TestCase):
    EXPECTED = {"speed": ("ratio", 2, "higher"), "size": ("KiB", report.OfPeer(1), "lower")}
    TIMED = {"time": ("ms", 10, "lower"), "events lost": ("events", 0, "lower")}

    def result(self, argv, figures, ratios, expected=None):
        """Returns exit status and RESULT of a bench `b` with those figures."""
        with tempfile.TemporaryDirectory(prefix="weft-report-") as folder:
            stored = pathlib.Path(folder) / "ratios.json"
            stored.write_text(json.dumps({"tolerance": 0.1, "ratios": ratios}))
            usual, report.RATIOS = report.RATIOS, stored
            self.addCleanup(setattr, report, "RATIOS", usual)
            made = report.Report("b", expected=expected or self.EXPECTED, where="here", chosen=report.options(argv))
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                for name, value, peer in figures:
                    made.figure(name, value, peer)
                status = made.result()
        last = printed.getvalue().splitlines()[-1]
        self.assertTrue(last.startswith("RESULT "))
        return status, json.loads(last.removeprefix("RESULT "))

    def test_a_missed_target_is_no_failure_without_the_gate(self):
        status, result = self.result([], [("speed", 1.0, None), ("size", 5, 4)], {})
        self.assertEqual(status, 0)
        self.assertEqual([target["met"] for target in result["targets"]], [False, False])

    def test_the_gate_fails_on_a_worse_ratio(self):
        ratios = {"b": {"speed": 3.0, "size": 0.5}}
        for speed, size, status in ((2.8, 2.1, 0), (2.6, 2.0, 1), (4.0, 2.3, 1), (9.0, 1.0, 0)):
            said, result = self.result(["--gate"], [("speed", speed, None), ("size", size, 4)], ratios)
            self.assertEqual(said, status, (speed, size))
            self.assertEqual(len(result["regressed"]), status)

    def test_the_gate_fails_where_a_ratio_was_not_measured(self):
        status, result = self.result(["--gate"], [("speed", 3.0, None)], {"b": {"speed": 3.0, "size": 0.5}})
        self.assertEqual((status, len(result["regressed"])), (1, 1))

    def test_a_stored_ratio_may_have_a_margin_of_its_own(self):
        for speed, status in ((1.6, 0), (1.4, 1)):
            figures = [("speed", speed, None), ("size", 3, 4)]
            self.assertEqual(self.result(["--gate"], figures, {"b": {"speed": [3.0, 1]}})[0], status, speed)

    def test_a_time_without_a_peer_is_stored_as_a_part_of_its_limit(self):
        for time, lost, status in ((7.9, 0, 0), (8.1, 0, 1), (4.0, 1, 1)):
            figures = [("time", time, None), ("events lost", lost, None)]
            self.assertEqual(self.result(["--gate"], figures, {"b": {"time": [0.4, 1]}}, self.TIMED)[0], status, time)

    def test_the_gate_judges_targets_where_no_ratio_is_stored(self):
        for ratios in ({}, {"b": {"size": 0.75}}):
            for speed, status in ((2.5, 0), (1.5, 1)):
                figures = [("speed", speed, None), ("size", 3, 4)]
                self.assertEqual(self.result(["--gate"], figures, ratios)[0], status, (speed, ratios))

    def test_smoke_judges_no_target_but_all_must_run(self):
        self.assertEqual(self.result(["--smoke"], [("speed", 0.1, None), ("size", 9, 4)], {})[0], 0)
        self.assertEqual(self.result(["--smoke"], [("speed", 9.0, None)], {})[0], 1)

    def test_options_leave_the_other_arguments(self):
        self.assertEqual(report.options(["per_event", "--gate"]), (True, False, ["per_event"]))

    def test_the_stored_ratios_are_of_targets(self):
        stored = json.loads(report.RATIOS.read_text(encoding="utf-8"))
        self.assertGreater(stored["tolerance"], 0)
        benches = {path.parent.name: path.read_text(encoding="utf-8") for path in (TOP / "bench").glob("*/run")}
        for bench, ratios in stored["ratios"].items():
            texts = [re.sub(r"{[^}]*}", "*", text) for text in re.findall(r'"([^"\n]{8,})"', benches[bench])]
            for name in ratios:
                self.assertTrue(any(len(text) > 5 and fnmatch.fnmatchcase(name, text) for text in texts), name)


class CheckTest(unittest.TestCase):
    """check(): of 100 emitted events."""
    ALL = {"recorded": 100, "delivered": 100, "overwritten": 0, "lost": 0}

    def check(self, counted, discarded=0, books=None, overwrite=False):
        peer = tracers.Lttng if books is None else tracers.Weft
        tracers.check(peer, tracers.Outcome("", discarded, 0, counted, books or {}), 100, overwrite)

    def test_all_events_on_disk_pass(self):
        self.check(100)
        self.check(100, books=self.ALL)

    def test_a_missing_or_repeated_event_fails(self):
        for counted in (0, 99, 101):
            for books in (None, self.ALL):
                with self.assertRaises(report.Failed) as raised:
                    self.check(counted, books=books)
                self.assertNotIsInstance(raised.exception, tracers.Incomplete)

    def test_the_books_contradict_the_disk(self):
        for wrong in ({"recorded": 99}, {"delivered": 99}, {"lost": 1}):
            with self.assertRaises(report.Failed):
                self.check(100, books=self.ALL | wrong)

    def test_discarded_events_make_the_run_incomplete(self):
        with self.assertRaises(tracers.Incomplete):
            self.check(97, discarded=3)
        with self.assertRaises(tracers.Incomplete):
            self.check(97, discarded=3, books={"recorded": 97, "delivered": 97, "overwritten": 0, "lost": 0})

    def test_only_weft_counts_overwritten_events(self):
        self.check(60, books={"recorded": 100, "delivered": 60, "overwritten": 40, "lost": 0}, overwrite=True)
        self.check(60, overwrite=True)
        for counted in (0, 101):
            with self.assertRaises(report.Failed):
                self.check(counted, overwrite=True)


if __name__ == "__main__":
    unittest.main()
