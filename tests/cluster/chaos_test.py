#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of weft are killed, stopped, replaced and deleted at random while programs in two namespaces are recorded, and
the node's kubelet and containerd killed and stopped. Then the books balance: what the programs emitted is delivered,
discarded or lost, in the Traces' statuses, the relay's counters and the stored files alike, and nothing is twice. Each
stream has as many packets and events as the relay counted of it.

WEFT_CHAOS_SEED: the seed of the first run (default 1); WEFT_CHAOS_RUNS: how many runs (default 1, with WEFT_LONG=1 ten).
A run prints what it does, and its seed repeats it."""

import os
import random
import signal
import time
import unittest

from tests.cluster.relay_files import discarded_in, numbers_and_others, stored_books, stream_books, trace_folder
from tests.cluster.weft_cluster import PATIENCE, TOP, kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, metric, send_signal, trace

LONG = os.environ.get("WEFT_LONG") == "1"
SEED = int(os.environ.get("WEFT_CHAOS_SEED", "1"))
RUNS = int(os.environ.get("WEFT_CHAOS_RUNS", "10" if LONG else "1"))
ACTIONS = 8  # of a run
NAMESPACES = ("red", "blue")
THREADS = 2
EVENTS = 600_000  # of each thread, some 18,000 a second: half a minute
TENANT = ["--events", str(EVENTS), "--threads", str(THREADS), "--burst", "20", "--pause-us", "1000"]
# Programs of weft's pods: component -> those that it may hit.
PROGRAMS = {"agent": ("weft-node-agent", "weft-consumer", "weft-keeper"), "relay": ("weft-relay",),
            "controller": ("weft-controller",), "webhook": ("weft-webhook",), "node": ("kubelet", "containerd")}


class Chaos(WeftTest):
    VALUES = "relay.storage.persistent=true"  # else a relay that is replaced begins anew

    def pids(self, component, program):
        if component == "node":
            running = (TOP / "build/cluster/node1/pid" / program).read_text()
            return [int(running)] if running else []
        return [pid for one in self.pods_of(component) for pid in container_pids("weft", one, program)]

    def hit(self, component, program, number, pause=0.0):
        """Sends a signal to all processes of a program, and SIGCONT after `pause` seconds."""
        hit = self.pids(component, program)
        send_signal(hit, number)
        if number != signal.SIGSTOP:
            return
        time.sleep(pause)
        send_signal(hit, signal.SIGCONT)

    def act(self, chance):
        """Something happens to a part of weft; returns what."""
        component = chance.choice(("agent", "agent", "agent", "relay", "controller", "webhook", "node"))
        program = chance.choice(PROGRAMS[component])
        what = chance.choice(("kill", "kill", "stop", "roll", "delete") if component != "node" else ("kill", "stop"))
        if what == "kill":
            self.hit(component, program, signal.SIGKILL)
            return f"killed {program}"
        if what == "stop":
            pause = chance.uniform(0.5, 4)
            self.hit(component, program, signal.SIGSTOP, pause)
            return f"stopped {program} for {pause:.1f} s"
        if what == "roll":
            kind = {"agent": "daemonset", "relay": "statefulset"}.get(component, "deployment")
            # Two restarts within a second are refused.
            self.wait_for(lambda: kubectl("-n", "weft", "rollout", "restart", f"{kind}/weft-{component}",
                                          check=False).returncode == 0, f"{component} is not replaced")
            return f"replaced the pods of {component}"
        # A pod that an action before took away may have no successor yet, or may be gone when kubectl asks for it.
        pods = self.wait_for(lambda: self.pods_of(component), f"there is no pod of {component}")
        kubectl("-n", "weft", "delete", "pod", chance.choice(pods), "--wait=false", "--ignore-not-found")
        return f"deleted a pod of {component}"

    def start(self, namespace):
        self.injected_namespace(namespace)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=TENANT), namespace=namespace)
        self.wait_for_pod(namespace, "tenant")

    def assert_books(self, namespace, name, begun, emitted):
        """The program had emitted `begun` events before the run, and `emitted` in it."""
        events = self.end_by_time(namespace, name)
        folder = trace_folder(namespace, name)
        self.assertEqual(events["recorded"] + events["discarded"], emitted, events)
        self.assertEqual(events["delivered"] + events["lost"] + events["overwritten"], events["recorded"], events)
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", namespace, name),
                         events["delivered"], "the relay's counter")
        self.assertEqual(discarded_in(folder), events["discarded"] + events["lost"] + events["overwritten"],
                         "what the streams say is missing")
        # Only the relay counts by stream. The program cannot know which stream counts an event that it discarded: that of
        # the last record in the event's slot, perhaps of another CPU.
        stored, works = stored_books(folder)
        self.assertEqual(stored, stream_books(folder), "the relay's counts of each stream, and its files")
        self.assertEqual(sum(book.events for book in stored.values()), events["delivered"], "the files")
        numbers, others = numbers_and_others(works)
        first = begun // (THREADS * EVENTS + 1) * EVENTS
        for thread in range(THREADS):
            seen = numbers.get(thread, [])
            self.assertLessEqual(set(seen), set(range(first, first + EVENTS)), "of another round")
            self.assertEqual(len(set(seen)), len(seen), "events are twice")
        self.assertLessEqual(others, 1)  # a tenant:idle may be discarded, too

    def run_with(self, seed):
        chance = random.Random(seed)
        name = f"seed-{seed}"
        before = {}
        for namespace in NAMESPACES:
            before[namespace] = self.emitted(namespace, "tenant")
            self.apply(trace(name, "tenant", user={"events": [{"name": "tenant:*"}]},
                             buffer={"size": "4Mi", "count": 8}), namespace=namespace)
        for namespace in NAMESPACES:
            self.wait_ready(namespace, name, traced=1)
            self.begin_round(namespace, "tenant")
        for _ in range(ACTIONS):
            print(f"    seed {seed}: {self.act(chance)}", flush=True)
            time.sleep(chance.uniform(0.5, 3))
        for part in ("daemonset/weft-agent", "statefulset/weft-relay", "deployment/weft-controller",
                     "deployment/weft-webhook"):
            kubectl("-n", "weft", "rollout", "status", part, f"--timeout={PATIENCE:.0f}s")
        self.wait_for(lambda: kubectl("-n", NAMESPACES[0], "logs", "tenant", check=False).returncode == 0,
                      "the kubelet does not answer")
        for namespace in NAMESPACES:
            self.wait_for(lambda n=namespace: self.emitted(n, "tenant") > before[n], "the round does not end")
            emitted = self.emitted(namespace, "tenant") - before[namespace]
            self.assert_books(namespace, name, before[namespace], emitted)

    def test_the_books_balance(self):
        for namespace in NAMESPACES:
            self.start(namespace)
        # The first run that fails is the last one: its programs may still emit what would count for the next.
        for seed in range(SEED, SEED + RUNS):
            self.run_with(seed)


if __name__ == "__main__":
    unittest.main()
