#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel events in Kubernetes: a node with control groups of version 2 and a kernel that takes modules is a guest, its
control plane and the relay are the test cluster on this machine. There the agent, started by its DaemonSet, loads
weft.ko, and a Trace of one namespace gets what its pod asks of the kernel and when it runs, and nothing of the pod
beside it that is another namespace's. An injected pod is recorded too, by a consumer in a control group of its own. The
examples of deploy/examples that are about the kernel show events."""

import json
import os
import pathlib
import re
import unittest

from tests.cluster.relay_files import relay_folder
from tests.cluster.weft_cluster import IMAGES, PATIENCE, TOP, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, trace
from tests.vm.guest_node import GuestNode
from tests.vm.kernel_trace import bytes_in, events_in
from tests.vm.kubernetes_guest import MODULES, NODE

MODULE = pathlib.Path(os.environ.setdefault("WEFT_MODULE", str(TOP / "build/kmod/6.12/weft.ko")))
KERNEL = MODULE.parent.name
IN_GUEST = ("weft-agent", "shell", "tenant")
EXAMPLES = TOP / "deploy/examples"
CHECKOUT = TOP / "build/release/tests/vm/checkout_go"  # the program of go-service.yaml
TOGETHER = 20  # rounds that each pod does at least while the Trace records
# It opens files of its own name, which are not there, and sleeps.
PROGRAM = """
printf {name} >/proc/self/comm
i=0
while :; do
  read nothing </{name}-$i
  echo round $i
  i=$((i + 1))
  sleep 0.5
done
"""
ROUND = re.compile(r"^round (\d+)$", re.MULTILINE)
WANTED = {"tracepoints": [{"name": "sched_switch"}], "syscalls": [{"name": "openat"}],
          "userProbes": [{"name": "open64", "object": "/lib/x86_64-linux-gnu/libc.so.6", "function": "open64",
                          "args": [{"name": "file", "type": "string"}]}]}
# What may run in a pod: beside the program itself its `sleep`, before and after it began as one, and the pod's pause.
IN_POD = {"sleep", "sh", "catatonit", "other"}


class Kubernetes(WeftTest):
    LOADED = ("weft-agent", "weft-controller", "weft-webhook", "weft-relay", "tenant")
    VALUES = f"agent.kernel.mode=auto,agent.kernel.modulesFolder={MODULES}"

    @classmethod
    def setUpClass(cls):
        missing = [name for name in IN_GUEST if not (IMAGES / f"{name}.tar").exists()]
        if missing or not MODULE.exists():
            raise AssertionError(f"there is no {MODULE} or no image {' '.join(missing)}")
        super().setUpClass()
        cls.guest = GuestNode(KERNEL, [IMAGES / f"{name}.tar" for name in IN_GUEST])
        cls.addClassCleanup(cls.guest.end)

    def in_node(self, script):
        """Runs a script of the shell among the node's processes and control groups."""
        return kubectl("-n", "node", "exec", "node", "--", "sh", "-c", script).stdout

    def start_pod(self, namespace, name):
        self.namespace(namespace)
        self.apply(pod(name, "shell", labels={"app": name}, node=NODE.name,
                       command=["sh", "-c", PROGRAM.format(name=name)],
                       automountServiceAccountToken=False), namespace=namespace)

    def rounds(self, namespace, name):
        """How many there were; read from the kubelet in the guest."""
        done = ROUND.findall(kubectl("-n", namespace, "logs", name, "--tail=5", check=False).stdout)
        return int(done[-1]) if done else 0

    def let_both_run(self, pods):
        before = {one: self.rounds(*one) for one in pods}
        self.wait_for(lambda: all(self.rounds(*one) >= before[one] + TOGETHER for one in pods),
                      "the pods do not run")

    def assert_whole(self, counts, events):
        self.assertEqual(counts.get("lost", 0), 0, counts)
        self.assertEqual(counts.get("discarded", 0), 0, counts)
        self.assertEqual(counts["recorded"], counts["delivered"], counts)
        self.assertEqual(len(events), counts["delivered"])

    def assert_own(self, events, name):
        """That it was there, every opening of the program, as system call and as function, one after the other,
        and when it ran."""
        for event, field in (("syscall_entry_openat", "filename"), ("open64", "file")):
            opened = [f[field] for n, f in events if n == event]
            numbers = [int(o.rpartition("-")[2]) for o in opened if o.startswith(f"/{name}-")]
            self.assertGreaterEqual(len(numbers), TOGETHER)
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        # What ran before the Trace is told first.
        told = {f["name"] for n, f in events if n == "lttng_statedump_process_state"}
        self.assertIn(name, told)
        self.assertLessEqual(told, IN_POD | {name})
        switches = [f for n, f in events if n == "sched_switch"]
        for member in ("prev_comm", "next_comm"):
            self.assertGreaterEqual(sum(f[member] == name for f in switches), TOGETHER)
        for fields in switches:
            both = {fields["prev_comm"], fields["next_comm"]}
            self.assertLessEqual(both, IN_POD | {name})
            self.assertNotEqual(both, {"other"}, "a switch among others")

    def agent_of_guest(self):
        agents = get("weft", "pods", "-l", "app.kubernetes.io/component=agent",
                     f"--field-selector=spec.nodeName={NODE.name}")["items"]
        self.assertEqual(len(agents), 1)
        return agents[0]

    def assert_nothing_was_started_again(self):
        agent = self.agent_of_guest()
        self.assertEqual(agent["status"]["containerStatuses"][0]["restartCount"], 0)
        logs = kubectl("-n", "weft", "logs", agent["metadata"]["name"]).stdout
        self.assertNotIn("started again", logs)

    def test_a_trace_has_what_its_namespace_does_and_nothing_else(self):
        self.wait_for(self.guest.is_ready, "the guest does not become a node")
        kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent",
                f"--timeout={PATIENCE:.0f}s")
        pods = [("reds", "redsecret"), ("blues", "bluesecret")]
        for one in pods:
            self.start_pod(*one)
        for one in pods:
            self.wait_for_pod(*one)
        self.apply(trace("t", "redsecret", user={}, kernel=WANTED), namespace="reds")
        self.wait_for(lambda: self.condition("reds", "t")["status"] == "True",
                      "the kernel is not traced")
        self.wait_for(lambda: self.condition("reds", "t", "Ready")["status"] == "True",
                      "the Trace does not become ready")
        sessions = get("reds", "tracesessions")["items"]
        self.assertEqual([s["spec"]["nodeName"] for s in sessions], [NODE.name])
        self.let_both_run(pods)
        counts = self.end_by_time("reds", "t")
        events = events_in(relay_folder() / "reds")
        self.assert_whole(counts, events)
        self.assert_own(events, "redsecret")
        stored = bytes_in(relay_folder())
        self.assertIn(b"redsecret", stored)
        self.assertFalse(b"bluesecret" in stored, "the other's name")
        kubectl("-n", "reds", "delete", "trace", "t", f"--timeout={PATIENCE:.0f}s")
        self.assert_nothing_was_started_again()

    def test_an_injected_pod_is_recorded_by_a_consumer_in_its_own_group(self):
        self.wait_for(self.guest.is_ready, "the guest does not become a node")
        namespace = self.injected_namespace("greens")
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, node=NODE.name,
                       args=["--events", "1000", "--threads", "2"]), namespace=namespace)
        self.namespace("node")
        node = pod("node", "shell", node=NODE.name, command=["sleep", "100000"], hostPID=True,
                   mounts={"/groups": {"hostPath": {"path": "/sys/fs/cgroup"}}})
        node["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        self.apply(node, namespace="node")
        for one in (("node", "node"), (namespace, "tenant")):
            self.wait_for_pod(*one)
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=namespace)
        self.wait_ready(namespace, "t")
        self.run_tenant(namespace)
        found = self.in_node(f"find /groups -type d -name consumer-{namespace}").split()
        self.assertEqual(len(found), 1, found)
        group = found[0]
        tree = self.in_node(f"cd {group}/../..; for pid in $(cat weft/cgroup.procs {group}/cgroup.procs); do "
                            f"cat /proc/$pid/comm; done; cat cgroup.procs {group}/memory.max {group}/pids.max")
        self.assertEqual(tree.split(), ["weft-keeper", "weft-node-agent", "weft-consumer", str(512 << 20), "16"])
        # The container's group takes no process any more, and the runtime knows what to do.
        agent = self.agent_of_guest()["metadata"]["name"]
        kubectl("-n", "weft", "exec", agent, "--", "weft-keeper", "--help")
        self.in_node(f"echo 0 >{group}/memory.max")
        self.wait_for(lambda: self.condition(namespace, "t", "ConsumerHealthy")["reason"] == "ConsumerOutOfMemory",
                      "the Trace does not say that its consumer was killed")
        emitted = self.run_tenant(namespace)
        self.assertEqual(self.in_node(f"cat {group}/memory.max").split(), [str(512 << 20)])
        counts = self.end_by_time(namespace, "t")
        self.assert_whole(counts, events_in(relay_folder() / namespace))
        self.assertEqual(counts["recorded"], emitted)
        agent = self.agent_of_guest()
        self.assertEqual(agent["status"]["containerStatuses"][0]["restartCount"], 0)
        kubectl("-n", namespace, "delete", "trace", "t", f"--timeout={PATIENCE:.0f}s")
        self.wait_for(lambda: not self.in_node(f"ls -d {group} 2>/dev/null || true"), "the group stays")

    def apply_example(self, file, *namespace, node="node-7"):
        """Applies an example that names `node` as the guest's; returns its kind and name."""
        text = (EXAMPLES / file).read_text(encoding="utf-8").replace(node, NODE.name)
        made = json.loads(kubectl(*namespace, "apply", "-f", "-", "-o", "json", text=text).stdout)
        return made["kind"].lower(), made["metadata"]["name"]

    def assert_shows_events(self, *namespace, kind, name):
        one = (*namespace, kind, name)
        self.wait_for(lambda: self.status_of(*one).get("events", {}).get("delivered", 0) > 0,
                      f"no event of {kind} {name}")
        kubectl(*namespace, "delete", kind, name, f"--timeout={PATIENCE:.0f}s")

    def status_of(self, *one):
        return json.loads(kubectl("get", *one, "-o", "json").stdout).get("status", {})

    def test_the_examples_of_the_kernel_show_events(self):
        self.wait_for(self.guest.is_ready, "the guest does not become a node")
        self.start_pod("shop", "shop")
        self.apply(pod("checkout", "shell", labels={"app": "checkout"}, node=NODE.name, command=["/app/checkout"],
                       mounts={"/app/checkout": {"hostPath": {"path": str(CHECKOUT), "type": "File"}}}),
                   namespace="shop")
        for name in ("shop", "checkout"):
            self.wait_for_pod("shop", name)
        made = [self.apply_example(f"traces/{name}.yaml", "-n", "shop") for name in ("kernel", "go-service")]
        for kind, name in made:
            self.assert_shows_events("-n", "shop", kind=kind, name=name)
        kind, name = self.apply_example("clustertraces/slow-disk.yaml")
        self.assert_shows_events(kind=kind, name=name)


if __name__ == "__main__":
    unittest.main()
