#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft itself is replaced while programs are recorded: each event is at the relay once, in one CTF trace for each
container, and the Trace's status says as much."""

import unittest

from tests.cluster.relay_files import discarded_in, numbers_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, metric, trace

EVENTS = 2_000_000  # of each of two threads in a round
TENANT = ["--events", str(EVENTS), "--threads", "2", "--burst", "200", "--pause-us", "1000"]


class Replace(WeftTest):

    def start(self, namespace):
        self.injected_namespace(namespace)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=TENANT), namespace=namespace)
        self.wait_for_pod(namespace, "tenant")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]},
                         buffer={"size": "4Mi", "count": 8}), namespace=namespace)
        self.wait_ready(namespace, "t")

    def agents(self):
        """The names of the agent's pods that are not on their way out."""
        return {item["metadata"]["name"] for item in
                get("weft", "pods", "-l", "app.kubernetes.io/component=agent")["items"]
                if "deletionTimestamp" not in item["metadata"]}

    def while_it_emits(self, namespace, do):
        """Lets the tenant emit a round, and calls `do` in the middle; returns all that it has emitted."""
        before = self.emitted(namespace, "tenant")
        kubectl("-n", namespace, "exec", "tenant", "--", "kill", "-USR1", "1")
        self.wait_for(lambda: metric(self.metrics("relay"), "weft_events_delivered_total", namespace, "t"),
                      "nothing comes")
        do()
        self.assertEqual(self.emitted(namespace, "tenant"), before, "the round was too short")
        self.wait_for(lambda: self.emitted(namespace, "tenant") > before, "the round does not end")
        return self.emitted(namespace, "tenant")

    def assert_exact(self, namespace, emitted):
        """All of it is at the relay, once, in one CTF trace."""
        events = self.end_by_time(namespace, "t")
        folder = trace_folder(namespace, "t")
        self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1, "more than one CTF trace")
        self.assertEqual((events["recorded"], events["delivered"], events["discarded"], events["lost"]),
                         (emitted, emitted, 0, 0))
        self.assertEqual(discarded_in(folder), 0)
        self.assertEqual(numbers_in(folder), {thread: list(range(EVENTS)) for thread in (0, 1)})
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", namespace, "t"),
                         emitted)

    def test_pods_that_missed_the_library_are_made_anew(self):
        name = "missed"
        self.namespace(name)
        template = pod("tenant", "tenant", labels={"app": "tenant"})
        template["spec"].pop("restartPolicy")
        self.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "tenant"},
                    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "tenant"}},
                             "template": {"metadata": {"labels": {"app": "tenant"}},
                                          "spec": template["spec"]}}}, namespace=name)
        kubectl("-n", name, "rollout", "status", "deployment/tenant", f"--timeout={PATIENCE:.0f}s")
        kubectl("label", "namespace", name, "weft.dev/inject=enabled")
        wanted = trace("t", "tenant", user={"events": [{"name": "tenant:*"}]})
        wanted["metadata"]["annotations"] = {"weft.dev/restart-missed": "true"}
        self.apply(wanted, namespace=name)

        def counts():
            pods = get(name, "trace", "t").get("status", {}).get("pods", {})
            return pods.get("matched"), pods.get("traced"), pods.get("skipped", [])

        self.wait_for(lambda: counts() == (2, 2, []), "not all pods are traced")
        evicted = [e for e in get(name, "events.v1.events.k8s.io")["items"] if e["reason"] == "PodEvicted"]
        self.assertEqual(len(evicted), 2)

    def test_the_agents_are_rolled(self):
        self.start("rolled")

        def roll():
            before = self.agents()
            kubectl("-n", "weft", "rollout", "restart", "daemonset/weft-agent")
            kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", f"--timeout={PATIENCE:.0f}s")
            self.assertFalse(before & self.agents())

        self.assert_exact("rolled", self.while_it_emits("rolled", roll))


if __name__ == "__main__":
    unittest.main()
