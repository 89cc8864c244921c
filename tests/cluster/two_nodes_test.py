#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of two nodes: that they are two, and one cluster, as a DaemonSet of agents needs it. A Trace of pods on both,
of one container of each."""

import unittest

from tests.cluster.relay_files import events_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, client, get, kubectl, pod, web_server
from tests.cluster.with_weft import WeftTest, trace

AGENT = """
for uid in $(ls /kubelet/pods); do echo "pod $uid"; done
echo these are all
exec sleep 100000
"""


def agents():
    """A DaemonSet with what a node agent is given: the machine's processes, the kubelet's folder."""
    container = {"name": "main", "image": "localhost/weft-test/shell:dev", "imagePullPolicy": "Never",
                 "command": ["sh", "-c", AGENT], "securityContext": {"privileged": True},
                 "volumeMounts": [{"name": "kubelet", "mountPath": "/kubelet"}]}
    labels = {"app": "agents"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agents"},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "hostPID": True, "terminationGracePeriodSeconds": 0,
                         "volumes": [{"name": "kubelet", "hostPath": {"path": "/var/lib/kubelet"}}]}}}}


def two_containers(name, node):
    """A pod in which two tenants run, main and side."""
    made = pod(name, "tenant", labels={"app": "tenant"}, node=node)
    main = made["spec"]["containers"][0]
    made["spec"]["containers"].append({**main, "name": "side"})
    return made


class TwoNodes(WeftTest):
    NODES = 2
    # Its files are read on the first node.
    VALUES = r"relay.nodeSelector.kubernetes\.io/hostname=node1"

    def test_pods_of_two_nodes_reach_each_other(self):
        name = self.namespace("across")
        self.apply(*web_server("web", node="node1"), *web_server("far", node="node2"),
                   client("near-web", node="node1"), client("near-far", node="node2"),
                   namespace=name)
        for pod in ("web", "far", "near-web", "near-far"):
            self.wait_for_pod(name, pod)
        for from_pod in ("near-web", "near-far"):
            for server in ("web", "far"):
                address = kubectl("-n", name, "get", "pod", server,
                                  "--output=jsonpath={.status.podIP}").stdout
                self.assert_answers(name, from_pod, f"{address}:8080", server)
                self.assert_answers(name, from_pod, server, server)

    def test_an_agent_sees_the_pods_of_its_own_node(self):
        name = self.namespace("agents", {"pod-security.kubernetes.io/enforce": "privileged"})
        self.apply(client("one", node="node1"), client("two", node="node2"), namespace=name)
        for pod in ("one", "two"):
            self.wait_for_pod(name, pod)
        self.apply(agents(), namespace=name)
        kubectl("-n", name, "rollout", "status", "daemonset/agents", f"--timeout={PATIENCE:.0f}s")
        uids = {pod: kubectl("-n", name, "get", "pod", pod, "--output=jsonpath={.metadata.uid}").stdout
                for pod in ("one", "two")}
        for node, own, other in (("node1", "one", "two"), ("node2", "two", "one")):
            agent = kubectl("-n", name, "get", "pods", "--selector=app=agents",
                            f"--field-selector=spec.nodeName={node}", "--output=name").stdout.strip()
            said = self.wait_for(
                lambda agent=agent: "these are all" in (text := kubectl("-n", name, "logs", agent).stdout) and text,
                f"{agent} does not say all")
            self.assertIn(f"pod {uids[own]}\n", said)
            self.assertNotIn(f"pod {uids[other]}\n", said)

    def test_traces_of_two_nodes_one_of_which_goes(self):
        name = self.injected_namespace("wide")
        self.apply(two_containers("one", "node1"), two_containers("two", "node2"), namespace=name)
        for one in ("one", "two"):
            self.wait_for_pod(name, one)
        wanted = trace("t", "tenant", user={"events": [{"name": "tenant:*"}]})
        wanted["spec"]["pods"]["containers"] = ["main"]
        self.apply(wanted, namespace=name)
        self.wait_ready(name, "t", traced=2)
        emitted = {one: self.run_tenant(name, pod=(one, "-c", "main")) for one in ("one", "two")}
        for one in ("one", "two"):
            self.run_tenant(name, pod=(one, "-c", "side"))
        total = sum(emitted.values())

        def events():
            return get(name, "trace", "t")["status"]["events"]

        self.wait_for(lambda: events()["delivered"] == total, "not all is delivered")
        folder = trace_folder(name, "t")
        for one, count in emitted.items():
            self.assertEqual([f.name for f in (folder / one).iterdir()], ["main"])
            self.assertEqual(sum(events_in(folder / one).values()), count)
        # What a node has counted stays when it goes.
        kubectl("delete", "node", "node2")
        self.wait_for(lambda: len(get(name, "tracesessions")["items"]) == 1, "its session stays")
        self.assertEqual(events()["delivered"], total)
        self.assertEqual(self.end_by_time(name, "t")["delivered"], total)


if __name__ == "__main__":
    unittest.main()
