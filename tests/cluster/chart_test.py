#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""charts/weft on a cluster: what it installs runs, adds the library to pods, and may go again."""

import json
import unittest

from weft_cluster import ClusterTest, PATIENCE, RESTRICTED, TOP, client, dev, kubectl

CHART = str(TOP / "charts/weft")
SYSTEM = "weft-system"
INJECTED = {"weft.dev/inject": "enabled"}
TRACE = {"apiVersion": "weft.dev/v1alpha1", "kind": "Trace", "metadata": {"name": "all"},
         "spec": {"user": {"events": [{"name": "*"}]}}}


def helm(*words, **more):
    return dev("cluster", "helm", *words, "--namespace", SYSTEM, **more)


class Chart(ClusterTest):
    LOADED = ("shell", "weft-agent", "weft-controller", "weft-webhook", "weft-relay")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        helm("install", "weft", CHART, "--create-namespace")
        for workload in ("deployment/weft-controller", "deployment/weft-webhook",
                         "statefulset/weft-relay"):
            done = kubectl("-n", SYSTEM, "rollout", "status", workload, f"--timeout={PATIENCE:.0f}s",
                           check=False)
            if done.returncode != 0:
                raise AssertionError(done.stderr + kubectl("-n", SYSTEM, "describe", "pods").stdout)

    def injected(self, name, labels=None):
        """A labelled namespace in which the library is; its name."""
        namespace = self.namespace(name, INJECTED | (labels or {}))
        self.wait_for(lambda: "weft-lib-" in kubectl("-n", namespace, "get", "configmaps",
                                                     "--output=name").stdout,
                      f"the library does not come to {namespace}")
        return namespace

    def preload(self, namespace, pod):
        return kubectl("-n", namespace, "exec", pod, "--", "printenv", "LD_PRELOAD",
                       check=False).stdout.strip()

    def start(self, namespace, name, **more):
        self.apply(client(name, **more), namespace=namespace)
        self.wait_for_pod(namespace, name)
        return self.preload(namespace, name)

    def start_injected(self, namespace, name):
        """Until the webhook, too, has seen the library: it leaves a pod alone before that."""
        numbers = iter(range(1_000_000))
        self.wait_for(lambda: self.start(namespace, f"{name}-{next(numbers)}"),
                      "the webhook adds no library")
        return f"{name}-{next(numbers) - 1}"

    def test_labelled_namespace_gets_the_library(self):
        namespace = self.injected("labelled", RESTRICTED)
        pod = self.start_injected(namespace, "pod")
        self.assertEqual(self.preload(namespace, pod), "/weft/libweft.so")
        loaded = kubectl("-n", namespace, "exec", pod, "--", "cat", "/proc/1/maps").stdout
        self.assertIn("/libweft.so", loaded)
        status = json.loads(kubectl("-n", namespace, "get", "pod", pod, "--output=json").stdout)
        self.assertEqual(status["status"]["qosClass"], "BestEffort")
        self.assertEqual(self.start(namespace, "no", labels={"weft.dev/inject": "disabled"}), "")

    def test_other_namespaces_are_left_alone(self):
        namespace = self.namespace("unlabelled")
        self.assertEqual(self.start(namespace, "pod"), "")
        self.assertNotIn("weft-lib-", kubectl("-n", namespace, "get", "configmaps",
                                              "--output=name").stdout)

    def test_trace_becomes_a_session_of_the_node(self):
        namespace = self.injected("traced")
        self.start_injected(namespace, "pod")
        self.apply(TRACE, namespace=namespace)
        self.addCleanup(kubectl, "-n", namespace, "delete", "trace", "all", "--wait=false")
        nodes = self.wait_for(lambda: kubectl(
            "-n", namespace, "get", "tracesessions",
            "--output=jsonpath={.items[*].spec.nodeName}").stdout, "there is no session")
        self.assertEqual(nodes, "node1")

    def test_wrong_value_is_refused_by_name(self):
        done = helm("template", "weft", CHART, "--set", "relay.replica=1", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("replica", done.stderr)


if __name__ == "__main__":
    unittest.main()
