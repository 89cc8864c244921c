#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flight recorders on a real cluster: what overwrites its oldest events, streamed and as a snapshot. The
books balance, and the newest events are there."""

import unittest

from tests.cluster.relay_files import events_in, relay_folder
from tests.cluster.weft_cluster import kubectl, pod
from tests.cluster.with_weft import WeftTest, metric, trace
from tests.local.huge_pages import HUGE, bytes_in_huge_pages, why_no_huge_page

EVENTS = 200_000  # of each of two threads in a round: many times what the buffers hold
BUFFER = {"size": "16Ki", "count": 2, "mode": "overwrite"}


class Modes(WeftTest):

    def start(self, namespace, buffer=BUFFER, **spec):
        """A tenant, and a Trace of it that is ready."""
        self.injected_namespace(namespace)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"},
                       args=["--events", str(EVENTS), "--threads", "2"]), namespace=namespace)
        self.wait_for_pod(namespace, "tenant")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}, buffer=buffer,
                         **spec), namespace=namespace)
        self.wait_ready(namespace, "t")

    def assert_end(self, namespace, emitted):
        events = self.end_by_time(namespace, "t")
        self.assertEqual(events["recorded"], emitted)
        self.assertEqual(events["recorded"], events["delivered"] + events["overwritten"])
        self.assertGreater(events["overwritten"], 0, "nothing was overwritten: the buffers are too large")
        stored = events_in(relay_folder() / namespace / "t")
        self.assertEqual(sum(stored.values()), events["delivered"])
        self.assertEqual(metric(self.metrics("agent"), "weft_events_overwritten_total", namespace, "t"),
                         events["overwritten"])
        return stored

    def test_overwritten_events_are_counted(self):
        self.start("flight")
        self.assert_end("flight", self.run_tenant("flight"))

    def test_rings_in_full_use_are_moved_into_huge_pages(self):
        why = why_no_huge_page()
        if why:
            self.skipTest(f"no huge page is to be had here: {why}")
        self.start("busy", buffer={"mode": "overwrite"})
        self.run_tenant("busy")
        self.wait_for(lambda: bytes_in_huge_pages(kubectl("-n", "busy", "exec", "tenant", "--", "cat",
                                                          "/proc/1/smaps").stdout) >= HUGE,
                      "no ring was moved")

    def test_a_snapshot_is_what_the_buffers_hold_at_the_end(self):
        self.start("snapshot", output={"mode": "snapshot"})
        emitted = self.run_tenant("snapshot", rounds=2)
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", "snapshot", "t"),
                         0)
        stored = self.assert_end("snapshot", emitted)
        # A round ends with it, on a thread of its own.
        self.assertGreaterEqual(stored["tenant:idle"], 1)

    def test_the_last_events_of_a_pod_that_ended_are_there(self):
        self.start("ended", output={"mode": "snapshot"})
        emitted = self.run_tenant("ended")
        kubectl("-n", "ended", "delete", "pod", "tenant")
        self.wait_for(lambda: metric(self.metrics("relay"), "weft_events_delivered_total", "ended",
                                     "t"), "nothing of the pod comes")
        self.assert_end("ended", emitted)


if __name__ == "__main__":
    unittest.main()
