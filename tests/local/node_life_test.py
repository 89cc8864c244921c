#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a node of a cluster whose keeper, agent and consumer die together, whose agent is stopped,
or whose consumer exceeds its memory limit. Programs in pods go on meanwhile, and every event is
still counted once. Processes and control groups are real; the test itself is the kubelet and the
API server (tests/vm/node.py)."""

import collections
import contextlib
import os
import signal
import subprocess
import unittest

from tests.cluster.with_weft import metric
from tests.local import memory_group
from tests.local.memory_group import MI
from tests.local.weft_local import BUILD, EMITTER, PATIENCE, TICK, children_of, free_port, is_running
from tests.vm.node import CGROUPS, NodeTest, Tenant, order

NAMESPACE = "shop"
RECORDS = {"user": {"events": [{"name": "emitter:*"}]}}


def control_groups():
    """Returns the folder in which groups can be made: version 2, or a hierarchy of version 1. None:
    there is no such folder."""
    for top in (CGROUPS, CGROUPS / "pids", CGROUPS / "freezer"):
        if (top / "cgroup.procs").exists() and os.access(top, os.W_OK):
            return top
    return None


class Pod(Tenant):
    """A pod with the library, as the webhook makes it."""

    def __init__(self, name, cgroups, kubelet):
        super().__init__(NAMESPACE, name, driver="cgroupfs", cgroups=cgroups)
        self.volume = kubelet / "pods" / self.uid / "volumes/kubernetes.io~configmap/weft"
        self.volume.mkdir(parents=True)
        # In a pod the path is short, as a socket's must be.
        self.mount = kubelet.parent / name
        self.mount.symlink_to(self.volume)

    def object(self):
        pod = super().object()
        pod["spec"]["volumes"] = [{"name": "weft", "configMap": {"name": "weft-lib-1"}}]
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "weft", "mountPath": "/weft"}]
        return pod

    def environment(self):
        return dict(os.environ, LD_PRELOAD=str(BUILD / "lib/libweft.so"), WEFT_DIR=str(self.mount),
                    WEFT_CONTAINER="main")

    def remove_groups(self):
        for group in (self.cgroup, self.cgroup.parent):
            with contextlib.suppress(OSError):
                group.rmdir()


class LifeTest(NodeTest):
    """A node that records the pods of one namespace."""

    kernel_mode = "off"

    def setUp(self):
        super().setUp()
        self.health_port = free_port()
        self.hold = self.folder / "hold"
        self.start_node()
        self.addCleanup(self.end_node)
        self.api.put("tracesessions", self.order())

    def order(self, state="Active"):
        return order(NAMESPACE, self.relay, {}, state, **RECORDS)

    def end_node(self):
        self.keeper.kill()
        self.kill_node()

    def kill_node(self):
        """Returns the processes. What the keeper started may end with it before it is killed, too."""
        pids = self.node_processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return pids

    def pod(self, name):
        """Returns a pod that is being recorded."""
        pod = Pod(name, control_groups(), self.folder / "kubelet")
        self.addCleanup(pod.remove_groups)
        self.addCleanup(self.end_all)
        self.api.put("pods", pod.object())
        self.wait_for(lambda: self.records(pod), lambda: f"not recorded: {self.status(NAMESPACE)}")
        return pod

    def records(self, pod):
        """Does the control area of the pod's processes have the session's rules, and does the relay take
        events? The session's own file has the channel a moment before: what is emitted meanwhile is not traced."""
        area = pod.volume / "main.ctl"
        return area.exists() and b"emitter:" in area.read_bytes() \
            and self.condition(NAMESPACE, "RelayAvailable")[0] == "True"

    def emit(self, pod, events, *options):
        program = pod.run(EMITTER, "--events", events, "--report", self.report, *options,
                          env=pod.environment(), stdin=subprocess.DEVNULL)
        self.running.append(program)
        return program

    def node_processes(self):
        return [self.keeper.pid, *children_of(self.keeper.pid)]

    def delivered(self):
        """Returns the relay's count."""
        return metric(self.metrics(self.relay_http), "weft_events_delivered_total", NAMESPACE, "t")

    def wait_for_more(self):
        before = self.delivered()
        self.wait_for(lambda: self.delivered() > before, "no event comes")

    def assert_books(self, emitted):
        """Checks that every emitted event is in one CTF trace, once, and counted once."""
        counts = self.end(NAMESPACE, {}, **RECORDS)
        self.assertEqual(counts, {"recorded": emitted, "delivered": emitted, "overwritten": 0, "lost": 0,
                                  "discarded": 0, "missing": 0})
        self.assertNotRegex(self.metrics(), r"weft_streams_tail_unknown_total\{[^}]*\} [1-9]")
        stored = list((self.folder / "relay" / NAMESPACE).rglob("metadata"))
        self.assertEqual(len(stored), 1, stored)
        shown = subprocess.run(["babeltrace2", stored[0].parent], capture_output=True, text=True,
                               timeout=PATIENCE, check=True)
        self.assertEqual(shown.stderr, "")
        ticks = collections.Counter(m.groups() for m in map(TICK.search, shown.stdout.splitlines()) if m)
        self.assertEqual([tick for tick, count in ticks.items() if count != 1][:5], [])
        self.assertEqual(len(ticks), emitted)
        self.assertEqual(self.delivered(), emitted)
        self.stop_node()


@unittest.skipUnless(os.geteuid() == 0 and control_groups(), "needs root, and control groups to make")
class NodeLife(LifeTest):

    def test_keeper_agent_and_consumer_die_together(self):
        pod = self.pod("one")
        programs = []

        def emit():
            programs.append(self.emit(pod, 6000, "--threads", 2, "--pause-us", 300, "--hold", self.hold))

        def all_at_once():
            pids = self.kill_node()
            self.wait_for(lambda: not any(map(is_running, pids[1:])), "a process stays")

        def the_keeper_alone():
            """Its agent and consumer are still ending when the next ones begin."""
            os.kill(self.keeper.pid, signal.SIGKILL)

        def in_order():
            self.keeper.send_signal(signal.SIGTERM)

        for end in (all_at_once, the_keeper_alone, in_order, all_at_once):
            emit()
            self.wait_for_more()
            end()
            self.keeper.wait(PATIENCE)
            emit()  # its ring set cannot be announced
            self.start_node()
            self.wait_for_more()
        self.hold.touch()
        for program in programs:
            self.assertEqual(program.wait(PATIENCE), 0)
        self.assert_books(self.emitted())

    def test_a_ring_set_that_is_gone_with_the_keeper_is_counted_once(self):
        pod = self.pod("one")
        goes = self.emit(pod, 100, "--hold", self.hold)
        self.wait_for(lambda: self.delivered() == 100, "the events do not come")
        # The commit of these events begins when the journal knows those of the other program. Otherwise the
        # next consumer makes the relay cut off packets that it cannot make again, since their ring is gone.
        stays = self.emit(pod, 100, "--hold", self.hold)
        self.wait_for(lambda: self.delivered() == 200, "the events do not come")
        self.assertEqual(self.condition(NAMESPACE, "AgentStayed"), ("", "", ""))
        self.kill_node()
        self.keeper.wait(PATIENCE)
        goes.kill()
        goes.wait()
        self.let_time_pass()
        self.start_node()
        message = self.wait_condition(NAMESPACE, "AgentStayed", "False", "AgentWasAway")
        self.assertRegex(message, r"^no agent ran from 2\S+Z to 2\S+Z: programs that began and ended meanwhile are in "
                                  r"no count$")
        # An agent that has taken this one in has looked for the others.
        self.emit(pod, 100, "--hold", self.hold)
        self.wait_for(lambda: self.delivered() == 300, "the events do not come")
        self.hold.touch()
        self.assertEqual(stays.wait(PATIENCE), 0)
        counts = self.end(NAMESPACE, {}, **RECORDS)
        self.assertEqual((counts["recorded"], counts["delivered"]), (300, 300))
        self.assertRegex(self.metrics(), r"weft_streams_tail_unknown_total\{[^}]*\} 1\n")
        self.stop_node()

    def let_time_pass(self):
        """The agent was there an hour ago."""
        present = self.folder / "state/present"
        past = present.stat().st_mtime - 3600
        os.utime(present, (past, past))

    def test_a_journal_goes_with_the_last_session_of_its_namespace(self):
        self.pod("one")
        journals = self.folder / "run/journals"
        self.wait_for(lambda: sorted(f.name for f in journals.iterdir()) == [NAMESPACE, f"{NAMESPACE}.json"],
                      lambda: f"{list(journals.iterdir())}")
        self.end(NAMESPACE, {}, **RECORDS)
        self.api.put("tracesessions", order(NAMESPACE, self.relay, {}, "Draining", **RECORDS), "DELETED")
        self.wait_for(lambda: not list(journals.iterdir()), "the journal stays")
        self.stop_node()

    def end_while_the_agent_is_stopped(self, then):
        """A pod's program runs and ends, and the API server removes the pod, while the agent does
        not answer."""
        pod = self.pod("one")
        agent = self.wait_for(lambda: self.daemon("weft-node-agent"))
        os.kill(agent, signal.SIGSTOP)
        self.assertEqual(self.emit(pod, 100).wait(PATIENCE), 0)
        self.api.put("pods", pod.object(), "DELETED")
        os.kill(agent, then)
        self.wait_for(lambda: self.delivered() == 100, "what the pod recorded does not come")
        self.assert_books(100)

    def test_a_pod_that_ends_while_the_agent_is_stopped(self):
        self.end_while_the_agent_is_stopped(signal.SIGCONT)

    def test_a_pod_that_ends_before_another_agent_follows(self):
        self.end_while_the_agent_is_stopped(signal.SIGKILL)


@unittest.skipUnless(os.geteuid() == 0 and memory_group.top(), "needs root, and control groups that limit memory")
class ConsumerMemory(LifeTest):
    """The keeper's group stands for its container's."""

    keeper_options = ("--consumer-memory=256Mi",)

    def setUp(self):
        self.keeper_group = memory_group.top() / f"weft-test-{os.getpid()}"
        self.keeper_group.mkdir()
        self.addCleanup(self.remove_groups)
        memory_group.limit_file(self.keeper_group).write_text(str(512 * MI))
        super().setUp()

    def remove_groups(self):
        for name in ("consumers", "weft", ""):
            with contextlib.suppress(FileNotFoundError):
                (self.keeper_group / name).rmdir()

    def test_a_consumer_that_exceeds_its_memory_dies_alone(self):
        pod = self.pod("one")
        program = self.emit(pod, 6000, "--threads", 2, "--pause-us", 300, "--hold", self.hold)
        self.wait_for_more()
        group = self.keeper_group / "consumers" / f"consumer-{NAMESPACE}"
        self.assertEqual((memory_group.limit(group.parent), memory_group.limit(group)), (384 * MI, 256 * MI))
        consumer, agent = self.daemon("weft-consumer"), self.daemon("weft-node-agent")
        self.assertEqual((group / "cgroup.procs").read_text(), f"{consumer}\n")
        self.assertEqual(self.condition(NAMESPACE, "ConsumerHealthy"), ("", "", ""))
        while self.daemon("weft-consumer") == consumer:
            memory_group.use_up(group)
            self.assertEqual(self.emit(pod, 100).wait(PATIENCE), 0)  # the consumer needs memory for it
        message = self.wait_condition(NAMESPACE, "ConsumerHealthy", "False", "ConsumerOutOfMemory")
        self.assertRegex(message, r"\(out of memory: its limit is 256Mi\), \d+ times?; ")
        self.assertRegex(self.metrics(), rf'weft_consumers_out_of_memory_total{{namespace="{NAMESPACE}"}} [1-9]')
        self.wait_for_more()
        self.hold.touch()
        self.assertEqual(program.wait(PATIENCE), 0)
        self.assertEqual((group / "cgroup.procs").read_text(), f"{self.daemon('weft-consumer')}\n")
        self.assertEqual(memory_group.limit(group), 256 * MI)
        self.assertEqual(self.daemon("weft-node-agent"), agent)
        self.assert_books(self.emitted())
        self.assertEqual([name for name in group.parent.iterdir() if name.is_dir()], [])


if __name__ == "__main__":
    unittest.main()
