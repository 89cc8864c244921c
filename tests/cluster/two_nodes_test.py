#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster of two nodes: that they are two, and one cluster, as a DaemonSet of agents needs it."""

import unittest

from tests.cluster.weft_cluster import ClusterTest, PATIENCE, client, kubectl, web_server

AGENT = """
for uid in $(ls /kubelet/pods); do echo "pod $uid"; done
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


class TwoNodes(ClusterTest):
    NODES = 2

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
            said = self.wait_for(lambda agent=agent: kubectl("-n", name, "logs", agent).stdout,
                                 f"{agent} says nothing")
            self.assertIn(f"pod {uids[own]}\n", said)
            self.assertNotIn(f"pod {uids[other]}\n", said)


if __name__ == "__main__":
    unittest.main()
