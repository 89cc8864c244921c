#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flight recorders on a real cluster: what overwrites its oldest events, streamed and as a snapshot. The
books balance, and the newest events are there. Also Traces that have one name after each other, and the counts of
a session that is deleted."""

import os
import signal
import unittest

from tests.cluster.relay_files import discarded_in, events_in, relay_folder, trace_folder
from tests.cluster.weft_cluster import get, kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, metric, send_signal, trace
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

    def test_pods_whose_processes_lack_the_library_are_named(self):
        name = "named"
        self.start(name)
        bare = pod("bare", "shell", labels={"app": "tenant"}, command=["env", "-i", "sleep", "100000"])
        absent = pod("absent", "absent", labels={"app": "tenant"}, command=["sleep", "100000"])
        self.apply(bare, absent, namespace=name)

        def skipped():
            pods = get(name, "trace", "t")["status"]["pods"]
            return pods["traced"], {s["reason"]: s["names"] for s in pods.get("skipped", [])}

        wanted = (1, {"LibraryNotLoaded": ["bare"], "NotStarted": ["absent"]})
        self.wait_for(lambda: skipped() == wanted, f"not all pods are named: {skipped()}")
        self.assertEqual(self.condition(name, "t", "Ready")["status"], "True")

    def agent_pid(self):
        """The process weft-node-agent on the node, which the keeper starts again; None: it does not run."""
        return next(iter(container_pids("weft", self.agent_pod(), "weft-node-agent")), None)

    def agent_pod(self):
        return self.pods_of("agent")[0]

    def test_the_agents_pod_is_killed_deleted_and_comes_back(self):
        """The program goes on meanwhile: all that it emitted is in one CTF trace or counted as discarded, once."""
        name = "replaced"
        self.start(name, buffer={"mode": "discard"})
        self.run_tenant(name)
        send_signal(container_pids("weft", self.agent_pod()), signal.SIGKILL)
        self.run_tenant(name)
        self.wait_for(self.agent_pid, "the agent's container is not started again")
        self.run_tenant(name)
        kubectl("-n", "weft", "delete", "pod", self.agent_pod(), "--timeout=120s")
        self.run_tenant(name)
        kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", "--timeout=120s")
        self.wait_ready(name, "t")
        emitted = self.run_tenant(name)
        events = self.end_by_time(name, "t")
        folder = trace_folder(name, "t")
        self.assertEqual(self.events_of(folder), emitted)
        self.assertEqual(sum(events_in(folder).values()), events["delivered"])
        self.assertEqual((events["lost"], events["recorded"]), (0, events["delivered"]))
        self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1)

    def events_of(self, folder):
        return sum(events_in(folder).values()) + discarded_in(folder)

    def test_counts_of_a_deleted_session_stay(self):
        name = "removed"
        self.start(name, buffer={"mode": "discard"})
        self.run_tenant(name)
        before = get(name, "tracesessions")["items"][0]["metadata"]
        kubectl("-n", name, "delete", "tracesession", before["name"], "--timeout=120s")

        def next_is_ready():
            return any(s["metadata"]["uid"] != before["uid"] and
                       self.condition(name, before["name"], "Ready", "tracesession")["status"] == "True"
                       for s in get(name, "tracesessions")["items"])

        self.wait_for(next_is_ready, "no other session follows")
        emitted = self.run_tenant(name)
        events = self.end_by_time(name, "t")
        self.assertEqual(events["recorded"] + events["discarded"], emitted)
        self.assertEqual(events["recorded"], events["delivered"])
        self.assertEqual(get(name, "trace", "t")["status"]["removedSessions"]["uids"], [before["uid"]])
        notes = [e["note"] for e in get(name, "events.events.k8s.io")["items"] if e["reason"] == "Completed"]
        self.assertEqual(len(notes), 1, notes)
        self.assertIn(f"Recorded {events['recorded']} events and delivered {events['delivered']}.", notes[0])

    def test_a_trace_made_again_has_a_folder_of_its_own(self):
        name = "again"
        self.start(name, buffer={"mode": "discard"})
        first = trace_folder(name, "t")
        self.run_tenant(name)
        # The agent that follows goes on in the same CTF trace.
        before = self.agent_pid()
        os.kill(before, signal.SIGKILL)
        self.wait_for(lambda: self.agent_pid() not in (None, before), "the agent is not started again")
        emitted = self.run_tenant(name)
        kubectl("-n", name, "delete", "trace", "t", "--timeout=120s")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=name)
        self.wait_ready(name, "t")
        second = trace_folder(name, "t")
        emitted_again = self.run_tenant(name) - emitted
        self.end_by_time(name, "t")
        self.assertEqual({first, second}, set((relay_folder() / name / "t").iterdir()))
        self.assertEqual(second.name, get(name, "trace", "t")["metadata"]["uid"])
        self.assertEqual(self.events_of(first), emitted)
        self.assertEqual(self.events_of(second), emitted_again)
        for folder in (first, second):
            self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
