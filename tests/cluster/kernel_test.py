#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel events on a node that cannot record them: the test cluster's pods are in control groups of version 1.
The condition says so, and what the pods do in user space is recorded as ever."""

import unittest

from tests.cluster.relay_files import events_in, relay_folder
from tests.cluster.weft_cluster import PATIENCE, get, kubectl, pod
from tests.cluster.with_weft import AS_CONTROLLER, WeftTest, trace

SYSCALLS = {"syscalls": [{"name": "openat"}]}


class Kernel(WeftTest):
    VALUES = "agent.kernel.mode=auto"

    def wait_refused(self, namespace, name):
        self.wait_for(lambda: self.condition(namespace, name)["status"] == "False",
                      "nothing is said of the kernel")
        said = self.condition(namespace, name)
        self.assertEqual(said["reason"], "CgroupV1")
        self.assertIn("node1: ", said["message"])

    def test_user_space_goes_on_without_the_kernel(self):
        self.injected_namespace("kernels")
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=["--events", "1000"]),
                   namespace="kernels")
        self.wait_for_pod("kernels", "tenant")
        self.apply(trace("both", "tenant", user={"events": [{"name": "tenant:*"}]}, kernel=SYSCALLS),
                   namespace="kernels")
        self.wait_ready("kernels", "both", traced=1)
        self.wait_refused("kernels", "both")
        emitted = self.run_tenant("kernels")
        events = self.end_by_time("kernels", "both")
        self.assertEqual(events["recorded"] + events.get("discarded", 0), emitted)
        self.assertEqual(events["delivered"], events["recorded"])
        stored = events_in(relay_folder() / "kernels" / "both")
        self.assertEqual(sum(stored.values()), events["delivered"])
        self.assertIn('weft_kernel_tracing_ready{reason="CgroupV1"} 0', self.metrics("agent"))

    def test_a_cluster_trace_says_why_no_node_can(self):
        """It needs no control groups: what these nodes lack is a module."""
        name = "wide"
        self.apply({"apiVersion": "weft.dev/v1alpha1", "kind": "ClusterTrace",
                    "metadata": {"name": name},
                    "spec": {"kernel": {"tracepoints": [{"name": "irq_handler_entry"}]}}})
        self.addCleanup(kubectl, "delete", "clustertrace", name, "--ignore-not-found")

        def said():
            return self.condition("default", name, resource="clustertrace")
        self.wait_for(lambda: said()["status"] == "False", "nothing is said of the kernel")
        self.assertNotEqual(said()["reason"], "CgroupV1")
        self.assertIn("node1: ", said()["message"])
        session, = get("weft", "tracesession")["items"]
        self.assertTrue(session["spec"]["clusterWide"])
        self.namespace("elsewhere")
        copy = {"apiVersion": session["apiVersion"], "kind": session["kind"],
                "metadata": {"name": "copy"}, "spec": session["spec"]}
        refused = self.create(copy, namespace="elsewhere", user=AS_CONTROLLER, check=False)
        self.assertIn("in weft's own namespace", refused.stderr)
        kubectl("delete", "clustertrace", name, f"--timeout={PATIENCE:.0f}s")
        self.wait_for(lambda: not get("weft", "tracesession")["items"], "its session stays")

    def test_a_trace_of_the_kernel_alone_says_why_it_waits(self):
        self.namespace("bare")
        self.apply(pod("plain", "shell", labels={"app": "plain"}, command=["sleep", "100000"]),
                   namespace="bare")
        self.wait_for_pod("bare", "plain")
        self.apply(trace("alone", "plain", user={}, kernel=SYSCALLS), namespace="bare")
        self.wait_refused("bare", "alone")
        self.assertEqual(self.condition("bare", "alone", "Ready")["status"], "False")
        kubectl("-n", "bare", "delete", "trace", "alone", f"--timeout={PATIENCE:.0f}s")


if __name__ == "__main__":
    unittest.main()
