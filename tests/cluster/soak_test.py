#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft records two namespaces for an hour, without a pause, while further Traces come and go. Its processes' memory
and open files stay flat, and the books balance at the end.

WEFT_SOAK_SECONDS: how long (default 3600). The long form only, ./dev test --long cluster."""

import os
import pathlib
import re
import statistics
import time
import unittest

from tests.cluster.relay_files import numbers_in, trace_folder
from tests.cluster.weft_cluster import kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, trace

SECONDS = float(os.environ.get("WEFT_SOAK_SECONDS", "3600"))
NAMESPACES = ("red", "blue")
# A round is at least 20 seconds long.
TENANT = ["--events", "10000", "--threads", "2", "--pause-us", "2000"]
# weft's pods: component -> the programs in one.
PROGRAMS = {"agent": ("weft-keeper", "weft-node-agent", "weft-consumer"), "relay": ("weft-relay",),
            "controller": ("weft-controller",), "webhook": ("weft-webhook",)}
# What a process may gain between the first third of the time and the last: allocators' pools fill slowly, and
# the relay keeps some 100 bytes for each Trace that has been.
GROWTH = 1.1
GROWTH_BYTES = 4 << 20
GROWTH_FILES = 4


def anonymous_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(re.search(r"^RssAnon:\s+(\d+) kB$", text, re.MULTILINE)[1]) << 10


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Soak(WeftTest):

    def processes(self):
        """Process id -> its name, of all processes of weft."""
        return {pid: f"{program} {pid}" for component, programs in PROGRAMS.items() for program in programs
                for one in self.pods_of(component) for pid in container_pids("weft", one, program)}

    def a_trace_comes_and_goes(self, number):
        namespace = NAMESPACES[number % len(NAMESPACES)]
        name = f"short-{number}"
        self.apply(trace(name, "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=namespace)
        self.wait_ready(namespace, name)
        kubectl("-n", namespace, "delete", "trace", name, "--timeout=60s")

    def round_of_both(self, number):
        """Lets both programs emit a round, and a Trace come and go meanwhile."""
        before = {namespace: self.begin_round(namespace, "tenant") for namespace in NAMESPACES}
        self.a_trace_comes_and_goes(number)
        for namespace in NAMESPACES:
            self.wait_for(lambda n=namespace: self.emitted(n, "tenant") > before[n], "a round does not end")

    def assert_flat(self, name, values, factor, more):
        third = max(1, len(values) // 3)
        first, last = (statistics.median(part) for part in (values[:third], values[-third:]))
        print(f"    {name}: {first:,.0f} -> {last:,.0f}", flush=True)
        self.assertLessEqual(last, first * factor + more, name)

    def test_memory_and_open_files_stay_flat(self):
        for namespace in NAMESPACES:
            self.injected_namespace(namespace)
            self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=TENANT), namespace=namespace)
        before = {}
        for namespace in NAMESPACES:
            self.wait_for_pod(namespace, "tenant")
            before[namespace] = self.emitted(namespace, "tenant")
            self.apply(trace("soak", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=namespace)
            self.wait_ready(namespace, "soak")
        memory, files = {}, {}
        first = self.processes()
        end = time.monotonic() + SECONDS
        number = 0
        while time.monotonic() < end:
            self.round_of_both(number)
            number += 1
            processes = self.processes()
            self.assertEqual(processes, first, "a process of weft's is another one than at the beginning")
            for pid, name in processes.items():
                memory.setdefault(name, []).append(anonymous_bytes(pid))
                files.setdefault(name, []).append(open_files(pid))
        for name in memory:
            self.assert_flat(f"{name}, bytes", memory[name], GROWTH, GROWTH_BYTES)
            self.assert_flat(f"{name}, open files", files[name], 1, GROWTH_FILES)
        for namespace in NAMESPACES:
            self.assert_books(namespace, before[namespace])

    def assert_books(self, namespace, before):
        emitted = self.emitted(namespace, "tenant") - before
        events = self.end_by_time(namespace, "soak")
        self.assertEqual(events["delivered"], emitted, events)
        self.assertEqual(events["lost"] + events["discarded"] + events["overwritten"], 0, events)
        stored = numbers_in(trace_folder(namespace, "soak"))
        for numbers in stored.values():
            self.assertEqual(len(set(numbers)), len(numbers), "events are twice")


if __name__ == "__main__":
    unittest.main()
