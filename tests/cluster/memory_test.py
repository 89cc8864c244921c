#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods with little memory under the largest buffers that a Trace may ask for, on a real cluster: they run
as without weft, all rings of a container stay under a twentieth of its limit, and the books are exact. A
container that ended gives its memory back while the relay is away, and the next one records. A consumer of weft's that
exceeds its limit is killed alone, and the next one reads on."""

import os
import pathlib
import re
import signal
import unittest

from tests.cluster.weft_cluster import PATIENCE, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, metric, send_signal, trace
from tests.local import memory_group

LARGEST = {"size": "64Mi", "count": 16}
MI = 1 << 20
LIVES = 3


def container_pid(namespace, name):
    """A process of a pod's container; None: it does not run."""
    return next(iter(container_pids(namespace, name)), None)


def pod_group(uid):
    """The folder of a pod's control group in the hierarchy that limits memory."""
    for parent, folders, _ in os.walk("/sys/fs/cgroup/memory"):
        if f"pod{uid}" in folders:
            return pathlib.Path(parent) / f"pod{uid}"
    raise AssertionError(f"no control group of pod {uid}")


def consumer_group(namespace):
    """The folder of the control group of the namespace's consumer."""
    for parent, folders, _ in os.walk("/sys/fs/cgroup/memory"):
        if f"consumer-{namespace}" in folders:
            return pathlib.Path(parent) / f"consumer-{namespace}"
    raise AssertionError(f"no control group of the consumer of {namespace}")


def shared_memory(group):
    """Bytes of shared memory that are charged to a group and those below it, ended ones too."""
    words = (group / "memory.stat").read_text(encoding="utf-8").split()
    return int(words[words.index("total_shmem") + 1])


class Memory(WeftTest):
    VALUES = "relay.storage.persistent=true"  # it goes, and comes back

    def start_tenant(self, namespace, limit, **spec):
        one = pod("tenant", "tenant", labels={"app": "tenant"},
                  args=["--events", "500000", "--threads", "2"], **spec)
        one["spec"]["containers"][0]["resources"] = {"requests": {"memory": limit},
                                                     "limits": {"memory": limit}}
        self.apply(one, namespace=namespace)
        self.wait_for_pod(namespace, "tenant")
        return pod_group(get(namespace, "pod", "tenant")["metadata"]["uid"])

    def emit(self, namespace):
        """One round, asked for from outside: a command in such a container would need more memory than it
        has. Returns what this life of the program has emitted."""
        before = self.wait_for_tenant(namespace, "tenant")
        os.kill(self.wait_for(lambda: container_pid(namespace, "tenant"), "it does not run"), signal.SIGUSR1)
        self.wait_for(lambda: self.emitted(namespace, "tenant") > before, "the round does not end")
        return self.emitted(namespace, "tenant")

    def assert_books(self, namespace, emitted):
        agent = self.metrics("agent")
        recorded = metric(agent, "weft_events_recorded_total", namespace, "t")
        discarded = metric(agent, "weft_events_discarded_total", namespace, "t")
        lost = metric(agent, "weft_events_lost_total", namespace, "t")
        self.assertEqual(recorded + discarded, emitted)
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", namespace, "t"),
                         recorded - lost)
        return recorded, discarded, lost

    def everything(self):
        return trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}, buffer=LARGEST)

    def test_small_pods_run_under_the_largest_buffers(self):
        for limit in (12, 16):
            with self.subTest(limit=limit):
                namespace = self.injected_namespace(f"small-{limit}")
                group = self.start_tenant(namespace, f"{limit}Mi")
                before = shared_memory(group)
                self.apply(self.everything(), namespace=namespace)
                self.wait_ready(namespace, "t", traced=1)
                granted = self.condition(namespace, "t", "BuffersGranted")
                self.assertEqual((granted["status"], granted["reason"]), ("False", "MemoryLimit"))
                self.assertRegex(granted["message"],
                                 r"buffers of 1 container are 16Ki x \d instead of 64Mi x 16: ")
                for _ in range(3):
                    emitted = self.emit(namespace)
                    self.assertLess(shared_memory(group) - before, limit * MI // 20)
                status = get(namespace, "pod", "tenant")["status"]["containerStatuses"][0]
                self.assertEqual((status["restartCount"], status["lastState"]), (0, {}))
                self.end_by_time(namespace, "t")
                recorded, _, lost = self.assert_books(namespace, emitted)
                self.assertGreater(recorded, 0)
                self.assertEqual(lost, 0)
                kubectl("-n", namespace, "delete", "pod", "tenant", "--wait=false")

    def test_a_consumer_that_exceeds_its_memory_dies_alone(self):
        namespace, other = map(self.injected_namespace, ("greedy", "frugal"))
        for one in (namespace, other):
            self.start_tenant(one, "256Mi")
            self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=one)
        for one in (namespace, other):
            self.wait_ready(one, "t", traced=1)
            self.emit(one)
        agent = self.pods_of("agent")[0]
        before = {name: container_pids("weft", agent, name) for name in ("weft-keeper", "weft-node-agent")}
        groups = {one: consumer_group(one) for one in (namespace, other)}
        pids = {one: int((group / "cgroup.procs").read_text(encoding="ascii")) for one, group in groups.items()}
        self.assertLessEqual(set(pids.values()), set(container_pids("weft", agent, "weft-consumer")))
        self.assertEqual({memory_group.limit(group) for group in groups.values()}, {512 * MI})
        self.assertEqual(memory_group.limit(groups[namespace].parent), 768 * MI)
        emitted = self.emit(namespace)
        while pathlib.Path(f"/proc/{pids[namespace]}").exists():
            memory_group.use_up(groups[namespace])
            emitted = self.emit(namespace)
        self.wait_for(lambda: self.condition(namespace, "t", "ConsumerHealthy")["reason"] == "ConsumerOutOfMemory",
                      "the Trace does not say so")
        self.assertEqual(self.condition(other, "t", "ConsumerHealthy")["status"], "")
        emitted = {namespace: self.emit(namespace), other: self.emit(other)}
        for name, old in before.items():
            self.assertEqual(container_pids("weft", agent, name), old)
        self.assertEqual((groups[other] / "cgroup.procs").read_text(encoding="ascii"), f"{pids[other]}\n")
        for one in (namespace, other):
            self.end_by_time(one, "t")
            _, _, lost = self.assert_books(one, emitted[one])
            self.assertEqual(lost, 0)
        # The runtime removes what a killed keeper leaves.
        send_signal(before["weft-keeper"], signal.SIGKILL)
        self.wait_for(lambda: not groups[other].parent.exists(), "the groups stay")
        kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", f"--timeout={PATIENCE:.0f}s")

    def test_containers_that_ended_give_their_memory_back_while_the_relay_is_away(self):
        namespace = self.injected_namespace("restarts")
        limit = 12
        group = self.start_tenant(namespace, f"{limit}Mi", restartPolicy="Always")
        before = shared_memory(group)
        self.apply(self.everything(), namespace=namespace)
        self.wait_ready(namespace, "t", traced=1)
        kubectl("-n", "weft", "scale", "statefulset", "weft-relay", "--replicas=0")
        self.wait_for(lambda: not self.pods_of("relay"), "the relay does not go")
        emitted = []
        for life in range(LIVES):
            emitted.append(self.emit(namespace))
            self.assertLess(shared_memory(group) - before, limit * MI // 20)
            pid = container_pid(namespace, "tenant")
            os.kill(pid, signal.SIGKILL)
            self.wait_for(lambda: container_pid(namespace, "tenant") not in (None, pid),
                          "the container does not start again")
            # Only pages of what was mapped by no one: a part of one ring set's at most.
            self.wait_for(lambda: shared_memory(group) - before < limit * MI // 200,
                          f"the memory of life {life} does not come back")
        emitted.append(self.emit(namespace))
        self.assertEqual(self.condition(namespace, "t", "RelayAvailable")["reason"], "Unreachable")
        kubectl("-n", "weft", "scale", "statefulset", "weft-relay", "--replicas=1")
        kubectl("-n", "weft", "rollout", "status", "statefulset/weft-relay", f"--timeout={PATIENCE:.0f}s")
        for kind in ("RelayAvailable", "Receiving"):
            self.wait_for(lambda kind=kind: self.condition(namespace, "t", kind)["status"] == "True",
                          f"{kind} does not become true")
        self.end_by_time(namespace, "t")
        status = get(namespace, "pod", "tenant")["status"]["containerStatuses"][0]
        self.assertEqual(status["restartCount"], LIVES)
        self.assertEqual(status["lastState"]["terminated"]["reason"], "Error")  # not OOMKilled
        recorded, discarded, lost = self.assert_books(namespace, sum(emitted))
        self.assertGreater(recorded - lost, 0)
        reasons = get(namespace, "trace", "t")["status"]["events"]["reasons"]
        self.assertEqual(sum(r["count"] for r in reasons), discarded + lost)
        self.assertTrue(all(re.fullmatch(r"full|memory", r["reason"]) for r in reasons), reasons)


if __name__ == "__main__":
    unittest.main()
