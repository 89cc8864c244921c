#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Readers learn when events were discarded: the interval that babeltrace2 and `weft view` name
contains them."""

import contextlib
import os
import pathlib
import re
import signal
import struct
import sys
import time
import unittest

from tests.local.weft_local import TICK, WEFT, LocalTest, babeltrace_for, children_of, name_of, subprocess

SAID = re.compile(r"Tracer discarded (\d+) events? between \[([\d.:]+)\] and \[([\d.:]+)\].*?"
                  r"(stream class ID: \d+, stream ID: \d+)", re.S)
SMALL = ("--subbuf-size", "4Ki", "--subbufs", "4")
DAY = 24 * 3600 * 10**9
# Between the clock of the trace and the program's own.
CLOCKS = 1_000_000


def nanoseconds(text):
    hours, minutes, seconds = text.split(":")
    whole, part = seconds.split(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 10**9 + int(part)


def go_on(consumer):
    """Where all of this took longer than the keeper waits for a heartbeat, there is another consumer."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(consumer, signal.SIGCONT)


class DiscardTime(LocalTest):
    def start_emitter(self, *options):
        """Starts a recording whose program waits for the file `begin`; returns the consumer's
        pid."""
        self.times = self.folder / "times"
        weft = self.start("-e", "emitter:*", *SMALL, program=self.emitter(
            "--begin", self.folder / "begin", "--times", self.times, *options))
        self.emitter_pid = self.wait_for(lambda: next(
            (pid for pid in children_of(weft.pid) if name_of(pid) == "local_emitter"), None))
        return weft, self.session_processes(weft)["weft-consumer"]

    def begin(self):
        (self.folder / "begin").touch()

    def wait_for_events(self, count):
        """Waits until the emitter has slept so often: it does once for each event. It may also have ended."""
        def slept():
            try:
                text = pathlib.Path(f"/proc/{self.emitter_pid}/status").read_text()
            except OSError:
                return sys.maxsize
            found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)
            return int(found[1]) if found else sys.maxsize
        end = slept() + count
        self.wait_for(lambda: slept() >= end or (self.folder / "times.0").exists())

    def intervals(self, command):
        done = subprocess.run([*map(str, command), self.folder / "trace"], capture_output=True, text=True, check=False,
                              env=os.environ | {"TZ": "UTC"})
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [(int(count), nanoseconds(begin), nanoseconds(end), stream)
                 for count, begin, end, stream in SAID.findall(" ".join(done.stderr.split()))]
        return found, done.stdout

    def discarded(self, lines, threads, large):
        """Returns when the events that are not in the trace were emitted: before, after."""
        recorded = {tuple(map(int, found.groups()[1:])) for found in map(TICK.search, lines.splitlines()) if found}
        out, first = [], None
        for thread in range(threads):
            raw = (self.folder / f"times.{thread}").read_bytes()
            all_of = [(before % DAY, after % DAY) for before, after in struct.iter_unpack("<QQ", raw)]
            first = min(all_of[0][0], first) if first else all_of[0][0]
            skip = large if thread == 0 else 0
            seen = {number for of, number in recorded if of == thread}
            out += [when for at, when in enumerate(all_of) if at < skip or at - skip not in seen]
        return out, first

    def assert_intervals_hold(self, threads=1, large=0):
        reader = babeltrace_for(self.folder / "trace")
        said, lines = self.intervals([reader])
        self.assertEqual(sorted(said), sorted(self.intervals([WEFT, "view"])[0]))
        discarded, first = self.discarded(lines, threads, large)
        self.assertGreater(len(discarded), 0)
        self.assertEqual(sum(count for count, *_ in said), len(discarded))
        outside = [when for when in discarded
                   if not any(begin - CLOCKS <= when[1] and when[0] <= end + CLOCKS for _, begin, end, _ in said)]
        self.assertEqual(outside[:3], [], said)
        # The first event makes the ring; weft's part of the program begins a little before it.
        self.assertGreaterEqual(min(begin for _, begin, _, _ in said), self.started - CLOCKS, said)
        if threads == 1:
            for count, begin, end, _ in said:
                inside = [when for when in discarded if begin - CLOCKS <= when[1] and when[0] <= end + CLOCKS]
                self.assertGreaterEqual(len(inside), count, said)
        return said

    def setUp(self):
        super().setUp()
        # Readers print the time of the day: no recording lasts over midnight.
        left = (DAY - time.time_ns() % DAY) / 10**9
        if left < 60:
            time.sleep(left + 1)
        self.started = time.time_ns() % DAY

    def test_of_a_consumer_that_stood_still_in_the_middle(self):
        weft, consumer = self.start_emitter("--events", 20000, "--pause-us", 50)
        self.begin()
        self.wait_for(lambda: list((self.folder / "trace").glob("**/user_*")))
        os.kill(consumer, signal.SIGSTOP)
        self.wait_for_events(2000)  # a ring of 16 KiB holds about 400
        go_on(consumer)
        self.finish(weft)
        self.assert_intervals_hold()

    def test_of_a_consumer_that_stood_still_until_the_end(self):
        weft, consumer = self.start_emitter("--events", 8000, "--pause-us", 50)
        self.begin()
        self.wait_for(lambda: list((self.folder / "trace").glob("**/user_*")))
        os.kill(consumer, signal.SIGSTOP)
        self.wait_for(lambda: (self.folder / "times.0").exists())
        time.sleep(0.2)
        go_on(consumer)
        self.finish(weft)
        self.assert_intervals_hold()

    def test_of_discards_before_the_first_record(self):
        weft, consumer = self.start_emitter("--events", 3000, "--large", 20, "--pause-us", 50)
        os.kill(consumer, signal.SIGSTOP)
        # The session is older than the program's first event, but no interval begins before that
        # event.
        time.sleep(0.3)
        self.started = time.time_ns() % DAY
        self.begin()
        self.wait_for(lambda: (self.folder / "times.0").exists())
        go_on(consumer)
        self.finish(weft)
        self.assert_intervals_hold(large=20)

    def test_of_a_burst_of_many_threads(self):
        weft, _ = self.start_emitter("--events", 20000, "--threads", 8)
        self.started = time.time_ns() % DAY
        self.begin()
        self.finish(weft)
        self.assert_intervals_hold(threads=8)


if __name__ == "__main__":
    unittest.main()
