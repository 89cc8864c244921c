#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way on a real cluster: from `kubectl apply` of a Trace to CTF at the relay, for the example
shop (three replicas, in a namespace that enforces `restricted`) and a program made for LTTng's headers
(in another namespace). What babeltrace2 reads is what the programs say they emitted, minus what was
discarded; then weft goes away, and they run on."""

import unittest

from tests.cluster.relay_files import discarded_in, events_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, RESTRICTED, RESTRICTED_CONTAINER, dev, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, metric, trace

ORDERS = 250_000  # of each shop: three events each, and a few
SHOPS = 3
TENANT_EVENTS = 2_000_000  # of each of two threads in a round
TENANT_ROUNDS = 2
# Small buffers, so that something is discarded.
SMALL = {"size": "16Ki", "count": 2}
KINDS = ("traces", "clustertraces", "tracesessions", "traceviews")


def deployment(name, container, **spec):
    labels = {"app": name}
    template = {"metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1,
                         "volumes": [{"name": "tmp", "emptyDir": {}}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def shop():
    """Three shops that open when there is /tmp/open, say what they emitted, and stay."""
    run = (f"until [ -e /tmp/open ]; do sleep 0.1; done; shop --orders {ORDERS} --threads 2;"
           " exec sleep 100000")
    return deployment("shop", {
        "name": "main", "image": "localhost/weft-test/shop:dev", "imagePullPolicy": "Never",
        "command": ["sh", "-c", run], "securityContext": RESTRICTED_CONTAINER,
        "resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}, replicas=SHOPS)


class Traced(WeftTest):

    def running_pods(self, namespace, app):
        return [p for p in get(namespace, "pods", "-l", f"app={app}")["items"]
                if "deletionTimestamp" not in p["metadata"]]

    def assert_unchanged(self, namespace, app, qos):
        for one in self.running_pods(namespace, app):
            self.assertEqual(one["status"]["qosClass"], qos)
            self.assertEqual([c["restartCount"] for c in one["status"]["containerStatuses"]], [0])

    def run_shops(self):
        names = [p["metadata"]["name"] for p in self.running_pods("orders", "shop")]
        for name in names:
            kubectl("-n", "orders", "exec", name, "--", "touch", "/tmp/open")
        self.wait_for(lambda: all(self.emitted("orders", name) for name in names),
                      "the shops do not close")
        return {name: self.emitted("orders", name) for name in names}

    def assert_balance(self, namespace, name, emitted):
        """P3's equality, from the programs over the agent to the relay; how many were discarded."""
        agent, relay = self.metrics("agent"), self.metrics("relay")
        recorded = metric(agent, "weft_events_recorded_total", namespace, name)
        discarded = metric(agent, "weft_events_discarded_total", namespace, name)
        lost = metric(agent, "weft_events_lost_total", namespace, name)
        self.assertEqual(recorded + discarded, emitted)
        self.assertEqual(metric(relay, "weft_events_delivered_total", namespace, name),
                         recorded - lost)
        self.assertEqual(metric(relay, "weft_relay_reported_discarded_total", namespace, name),
                         discarded)
        self.assertEqual(lost, 0)
        return discarded

    def assert_stored(self, folder, namespace, emitted):
        """Each pod's CTF has what the pod says, minus what its streams say was discarded."""
        self.assertEqual({f.name for f in folder.iterdir()}, set(emitted))
        for one, count in emitted.items():
            names = events_in(folder / one)
            self.assertEqual(sum(names.values()) + discarded_in(folder / one), count, one)
            own = {"orders": "shop:", "measures": "tenant:"}[namespace]
            self.assertTrue(all(event.startswith(own) for event in names), names)

    def test_from_apply_to_ctf(self):
        self.injected_namespace("orders", RESTRICTED)
        self.injected_namespace("measures", {})
        self.apply(shop(), namespace="orders")
        rounds = ["--events", str(TENANT_EVENTS), "--threads", "2"]
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=rounds),
                   namespace="measures")
        self.wait_for_library("orders", "shop")
        self.wait_for_pod("measures", "tenant")
        # Both Traces mean all events of both: each sees those of its own namespace.
        everything = {"events": [{"name": "shop:*"}, {"name": "tenant:*"}]}
        self.apply(trace("sales", "shop", user=everything, buffer=SMALL), namespace="orders")
        self.apply(trace("work", "tenant", user=everything, buffer=SMALL), namespace="measures")
        self.wait_ready("orders", "sales", traced=SHOPS)
        self.wait_ready("measures", "work", traced=1)
        self.assertEqual(get("orders", "trace", "sales")["status"]["pods"]["traced"], SHOPS)

        work = self.run_tenant("measures", TENANT_ROUNDS)
        sales = self.run_shops()
        self.assertGreaterEqual(work + sum(sales.values()), 10_000_000)
        self.assert_unchanged("orders", "shop", "Burstable")
        self.assert_unchanged("measures", "tenant", "BestEffort")

        events = self.end_by_time("measures", "work")
        sold = trace_folder("orders", "sales")
        # Deleted, it is drained before it goes.
        kubectl("-n", "orders", "delete", "trace", "sales", f"--timeout={PATIENCE:.0f}s")
        self.assertNotIn("NotDrained", [e["reason"] for e in
                                        get("orders", "events.v1.events.k8s.io")["items"]])

        discarded = self.assert_balance("measures", "work", work)
        self.assertGreater(discarded, 0, "nothing was discarded: the buffers are too large")
        self.assert_balance("orders", "sales", sum(sales.values()))
        self.assertEqual(events["recorded"] + events["discarded"], work)
        self.assertEqual(events["delivered"], events["recorded"])
        self.assert_stored(trace_folder("measures", "work"), "measures", {"tenant": work})
        self.assert_stored(sold, "orders", sales)
        self.leave_and_run_on()

    def leave_and_run_on(self):
        """weft is uninstalled while a Trace records."""
        self.apply(trace("more", "tenant", user={"events": [{"name": "*"}]}), namespace="measures")
        self.wait_ready("measures", "more")
        before = self.run_tenant("measures")
        dev("cluster", "helm", "uninstall", "weft", "--namespace", "weft", "--wait")
        self.assertGreater(self.run_tenant("measures"), before)
        kubectl("-n", "orders", "exec", "deployment/shop", "--", "true")
        self.assert_unchanged("orders", "shop", "Burstable")
        self.assert_unchanged("measures", "tenant", "BestEffort")
        # Traces stay, the completed one and the one that recorded, and nothing holds them.
        left = get("measures", "traces")["items"]
        self.assertEqual([(t["metadata"]["name"], t["metadata"].get("finalizers", []),
                           self.condition("measures", t["metadata"]["name"], "Ready")["reason"])
                          for t in left],
                         [("more", [], "Uninstalled"), ("work", [], "Completed")])
        kubectl("delete", "namespace", "measures", "orders", f"--timeout={PATIENCE:.0f}s")
        kubectl("delete", "crd", *(f"{kind}.weft.dev" for kind in KINDS), f"--timeout={PATIENCE:.0f}s")


if __name__ == "__main__":
    unittest.main()
