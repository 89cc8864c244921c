# SPDX-License-Identifier: Apache-2.0
"""Running things in a node from outside: in its network, or in all its namespaces.

They are put into the cluster's control group first, so that down() ends what still runs. A node's
first process is known by pid and start time, since pids come again.
"""

import os
import pathlib
import subprocess

from tests.cluster import groups, programs
from tests.cluster.settings import ADMIN, CLIENTS, CONTAINERD, CONTROL_PLANE

NETWORK = ("--net",)  # the machine's files, for clients
EVERYTHING = ("--mount", "--net", "--uts", "--ipc")


class Down(Exception):
    """The node does not run."""


def start_time(pid):
    """When a process started, in ticks since boot; None if there is no such process, or only its zombie."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def write_record(node, pid):
    node.record.write_text(f"{pid} {start_time(pid)}\n")


def first_process(node):
    """Pid of the node's first process, or None."""
    try:
        pid, started = node.record.read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if start_time(pid) == started else None


def environment():
    """What kubectl, helm and the daemons need to be found and to find."""
    return dict(os.environ, KUBECONFIG=str(ADMIN),
                PATH=f"{programs.folder()}:/usr/local/sbin:/usr/sbin:/sbin:{os.environ['PATH']}")


def command(words, node=CONTROL_PLANE, namespaces=NETWORK):
    pid = first_process(node)
    if pid is None:
        raise Down(f"{node.name} is down; start it with: ./dev cluster up")
    return ["nsenter", f"--target={pid}", *namespaces, "--", *map(str, words)]


def run(*words, node=CONTROL_PLANE, namespaces=NETWORK, check=True, **more):
    """Runs to the end, with its output as text in the result."""
    more.setdefault("capture_output", True)
    return subprocess.run(command(words, node, namespaces), check=check, text=True,
                          env=environment(), preexec_fn=lambda: groups.enter(CLIENTS), **more)


def execute(words, node=CONTROL_PLANE, namespaces=NETWORK):
    """Becomes the program."""
    words = command(words, node, namespaces)
    groups.enter(CLIENTS)
    os.execvpe(words[0], words, environment())


def kubectl(*words, **more):
    return run("kubectl", *words, **more)


def containerd_client(*words, node=CONTROL_PLANE, **more):
    return run("ctr", f"--address={CONTAINERD}", "--namespace=k8s.io", *words, node=node,
               namespaces=EVERYTHING, **more)


def load(image, nodes):
    """Imports an image file into the nodes' containerd. They see the machine's files but /run and
    /var/lib, so it comes by standard input."""
    for node in nodes:
        with open(image, "rb") as file:
            containerd_client("images", "import", "-", node=node, stdin=file)
