# SPDX-License-Identifier: Apache-2.0
"""What bench/cluster counts rather than times: does a program in a small pod stay alive, and is the status of a Trace
right after parts of weft were replaced."""

import signal

from bench.cluster.workbench import wait_for
from tests.cluster.weft_cluster import get, kubectl
from tests.cluster.with_weft import container_pids, send_signal

EMITS = ["--threads", "2", "--events", "50000"]  # after each signal
LARGEST = {"size": "64Mi", "count": 16}  # that a Trace may ask for


def rounds_of(namespace, name):
    """Returns what a program has emitted at the end of each of its rounds, of which the first is its start."""
    lines = kubectl("-n", namespace, "logs", name, check=False).stdout.splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("events ")]


def wait_until_traced(namespace, name):
    """Waits for a program, whose pod has the Trace's name, and for the Trace."""
    wait_for(lambda: rounds_of(namespace, name), f"{name} does not start")
    wait_for(lambda: get(namespace, "trace", name).get("status", {}).get("pods", {}).get("traced"),
             f"{name} is not traced")


def emit(namespace, name):
    """Runs a round of a program, or a part of it if the program is killed. Returns what it has emitted."""
    before = len(rounds_of(namespace, name))
    send_signal(container_pids(namespace, name), signal.SIGUSR1)
    wait_for(lambda: len(rounds_of(namespace, name)) > before or not container_pids(namespace, name),
             f"the round of {name} does not end")
    return rounds_of(namespace, name)[-1]


def was_killed(namespace, name):
    """Was the container of a pod ended, or started again?"""
    status = get(namespace, "pod", name)["status"]["containerStatuses"][0]
    return "running" not in status["state"] or status["restartCount"] > 0


def difference(namespace, name, emitted):
    """Ends a Trace. Returns by how many events its status differs from what the program emitted."""
    kubectl("-n", namespace, "patch", "trace", name, "--type=merge", "-p", '{"spec":{"duration":"1s"}}')
    wait_for(lambda: get(namespace, "trace", name)["status"]["phase"] == "Completed", "the Trace does not end")
    counts = get(namespace, "trace", name)["status"]["events"]
    return (abs(counts["recorded"] + counts["discarded"] - emitted) +
            abs(counts["delivered"] + counts["lost"] - counts["recorded"]))


def agent():
    """The name of the agent's pod, of which there is one."""
    return get("weft", "pods", "-l", "app.kubernetes.io/component=agent")["items"][0]["metadata"]["name"]


def replace_agent(namespace, name):
    """Kills the agent and its keeper, and deletes their pod; a program emits before each of these, and at the end.
    Returns the difference then."""
    for program in ("weft-node-agent", "weft-keeper"):
        emit(namespace, name)
        before = set(container_pids("weft", agent(), program))
        send_signal(before, signal.SIGKILL)
        wait_for(lambda program=program, before=before: set(container_pids("weft", agent(), program)) - before,
                 f"{program} is not started again")
    emit(namespace, name)
    kubectl("-n", "weft", "delete", "pod", agent())
    kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", "--timeout=120s")
    return difference(namespace, name, emit(namespace, name))


def remove_node(namespace, name, node):
    """Removes a node after a program on it has emitted, and all of that is counted. Returns the difference then."""
    emitted = emit(namespace, name)

    def accounted():
        counts = get(namespace, "trace", name)["status"]["events"]
        return counts["delivered"] + counts["discarded"] == emitted

    wait_for(accounted, "not all is counted")
    kubectl("delete", "node", node)
    wait_for(lambda: not get(namespace, "tracesessions")["items"], "the node's session stays")
    return difference(namespace, name, emitted)
