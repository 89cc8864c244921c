#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft is replaced while programs are recorded. The relay has each event once, or it is counted as discarded;
each container has one CTF trace, and the Trace's status agrees."""

import concurrent.futures
import unittest

from tests.cluster.relay_files import discarded_in, numbers_and_others_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, TOP, dev, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, metric, trace

EVENTS = 600_000  # of each of two threads in a round
# So slow that little is discarded while there is no consumer for a quarter of a minute.
TENANT = ["--events", str(EVENTS), "--threads", "2", "--burst", "60", "--pause-us", "1000"]


class Replace(WeftTest):
    LOADED = WeftTest.LOADED + ("older-controller",)
    VALUES = "relay.storage.persistent=true"  # as users have it

    def start(self, namespace):
        self.injected_namespace(namespace)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=TENANT), namespace=namespace)
        self.wait_for_pod(namespace, "tenant")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]},
                         buffer={"size": "4Mi", "count": 8}), namespace=namespace)
        self.wait_ready(namespace, "t", traced=1)

    def agents(self):
        """The names of the agent's pods that are not on their way out."""
        return {item["metadata"]["name"] for item in
                get("weft", "pods", "-l", "app.kubernetes.io/component=agent")["items"]
                if "deletionTimestamp" not in item["metadata"]}

    def while_it_emits(self, namespace, do):
        """Calls `do` while the tenant emits: a round that began before, and more until `do` has ended. Returns all that
        the tenant has emitted."""
        self.begin_round(namespace, "tenant")
        self.wait_for(lambda: metric(self.metrics("relay"), "weft_events_delivered_total", namespace, "t"),
                      "nothing comes")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(do)
            emitted = self.wait_for(lambda: self.emitted(namespace, "tenant"), "the round does not end")
            while not done.done():
                emitted = self.run_tenant(namespace)
        done.result()
        return emitted

    def assert_exact(self, namespace, emitted):
        """Each event is at the relay, once, in one CTF trace, or counted as discarded. Returns how many are there."""
        events = self.end_by_time(namespace, "t")
        folder = trace_folder(namespace, "t")
        self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1, "more than one CTF trace")
        self.assertEqual((events["recorded"] + events["discarded"], events["lost"]), (emitted, 0))
        self.assertEqual(events["delivered"], events["recorded"])
        self.assertGreater(events["delivered"], emitted // 2)
        self.assertEqual(discarded_in(folder), events["discarded"])
        # While weft is replaced, rounds follow: each has a tenant:idle, which may be discarded.
        stored, others = numbers_and_others_in(folder)
        self.assertEqual(sum(map(len, stored.values())) + others, events["delivered"], "the files")
        for numbers in stored.values():
            self.assertEqual(len(set(numbers)), len(numbers), "events are twice")
        return events["delivered"]

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
        missed = {item["metadata"]["name"] for item in get(name, "pods")["items"]}
        kubectl("label", "namespace", name, "weft.dev/inject=enabled")
        # What misses it half a minute after the Trace was made stays as it is.
        self.wait_for(lambda: get(name, "configmap", "-l", "weft.dev/library=current")["items"],
                      "the library does not come")
        wanted = trace("t", "tenant", user={"events": [{"name": "tenant:*"}]})
        wanted["metadata"]["annotations"] = {"weft.dev/restart-missed": "true"}
        self.apply(wanted, namespace=name)

        def counts():
            pods = get(name, "trace", "t").get("status", {}).get("pods", {})
            return pods.get("matched"), pods.get("traced"), pods.get("skipped", [])

        self.wait_for(lambda: counts() == (2, 2, []), "not all pods are traced")
        notes = [event["note"] for event in get(name, "events.v1.events.k8s.io")["items"]
                 if event["reason"] == "PodEvicted"]
        evicted = [note.split()[2].rstrip(",") for note in notes]
        self.assertEqual(len(set(evicted)), len(evicted), f"a pod was evicted twice: {notes}")
        # A pod that was made while the webhook did not answer is one more.
        self.assertLessEqual(missed, set(evicted))

    def test_the_agents_are_rolled(self):
        self.start("rolled")

        def roll():
            before = self.agents()
            kubectl("-n", "weft", "rollout", "restart", "daemonset/weft-agent")
            kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", f"--timeout={PATIENCE:.0f}s")
            self.assertFalse(before & self.agents())

        delivered = self.assert_exact("rolled", self.while_it_emits("rolled", roll))
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", "rolled", "t"), delivered)

    def test_the_relay_is_replaced_on_its_persistent_volume(self):
        """The Trace goes on in the files of before."""
        name = "relay"
        self.start(name)

        def replace():
            before = get("weft", "pod", "weft-relay-0")["metadata"]["uid"]
            kubectl("-n", "weft", "delete", "pod", "weft-relay-0", f"--timeout={PATIENCE:.0f}s")
            # The StatefulSet's status may be that from before.
            self.wait_for(lambda: any(one["metadata"]["uid"] != before for one in
                                      get("weft", "pods", "--field-selector=metadata.name=weft-relay-0")["items"]),
                          "there is no other relay")
            self.wait_for_pod("weft", "weft-relay-0")

        self.assert_exact(name, self.while_it_emits(name, replace))

    def library_of(self, namespace, name):
        volumes = get(namespace, "pod", name)["spec"]["volumes"]
        return next(v["configMap"]["name"] for v in volumes if v["name"] == "weft")

    def use_library_of(self, namespace, do, why):
        """Does something after which the controller has another library, and waits until it is the namespace's;
        returns the name of the one before."""
        def current():
            maps = get(namespace, "configmap", "-l", "weft.dev/library=current")["items"]
            return {one["metadata"]["name"] for one in maps}

        before = current()
        do()
        kubectl("-n", "weft", "rollout", "status", "deployment/weft-controller", f"--timeout={PATIENCE:.0f}s")
        self.wait_for(lambda: len(current()) == 1 and current() != before, why)
        return before.pop()

    def test_pods_with_an_older_library_are_recorded_after_an_upgrade(self):
        name = "older"
        self.injected_namespace(name)
        newer = self.use_library_of(
            name, lambda: kubectl("-n", "weft", "set", "image", "deployment/weft-controller",
                                  "controller=localhost/weft-test/older-controller:dev"),
            "the older library does not come")
        tenant = pod("tenant", "tenant", labels={"app": "tenant"})
        older = self.made_with(name, tenant, newer)
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=name)
        self.wait_ready(name, "t", traced=1)
        self.run_tenant(name)
        self.use_library_of(
            name, lambda: dev("cluster", "helm", "upgrade", "weft", TOP / "charts/weft", "--namespace", "weft",
                              "--reuse-values"), "the newer library does not come")
        self.assertEqual(self.library_of(name, "tenant"), older)
        tenant["metadata"]["name"] = "newer"
        self.assertEqual(self.made_with(name, tenant, older), newer)
        self.wait_for(lambda: get(name, "trace", "t")["status"]["pods"].get("traced") == 2, "both are not traced")
        emitted = self.run_tenant(name) + self.run_tenant(name, pod=("newer",))
        status = get(name, "trace", "t")["status"]
        self.assertEqual((status["pods"]["traced"], status["pods"].get("skipped", [])), (2, []))
        events = self.end_by_time(name, "t")
        self.assertEqual((events["recorded"], events["delivered"], events["missing"]), (emitted, emitted, 0))

    def made_with(self, namespace, wanted, other_than):
        """Makes a pod, anew until its library is another one than that, since the webhook hears of a library some time
        after this test does; returns the library's name."""
        name = wanted["metadata"]["name"]

        def make():
            self.apply(wanted, namespace=namespace)
            if self.library_of(namespace, name) != other_than:
                return self.library_of(namespace, name)
            kubectl("-n", namespace, "delete", "pod", name, "--grace-period=0", "--force")
            return None

        made = self.wait_for(make, "no pod with the other library")
        self.wait_for_pod(namespace, name)
        return made


if __name__ == "__main__":
    unittest.main()
