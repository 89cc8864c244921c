#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""node.py NUMBER: the first process of a node, in fresh mount, network, UTS and IPC namespaces.

cluster.py starts it (through unshare), already in the node's control group, and writes one line to its
standard input when the network cable is there. It prepares the namespaces, starts the daemons,
and stays: it holds the namespaces, starts daemons again that end, and reaps what they leave (it is
their subreaper). It is ended by SIGKILL, as all others are. Process ids are the machine's, as
tracing tests want them.

The machine stays as it was: whatever the daemons write goes to the state folder, to tmpfs, or
through an overlay that ends with the namespace.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import time

from tests.cluster import daemons
from tests.cluster.settings import BACK_OFF, CONTAINERD, Node, PATIENCE, POLL, RUN_SIZE

PR_SET_CHILD_SUBREAPER = 36

# The kubelet sets these for the whole machine unless it finds them as it wants them: it gets files.
WANTED_BY_KUBELET = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# What agents on a node expect; not on every machine.
FILE_SYSTEMS = {"/sys/fs/bpf": "bpf", "/sys/kernel/debug": "debugfs",
                "/sys/kernel/tracing": "tracefs"}


def run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


def bind(source, target):
    source.mkdir(parents=True, exist_ok=True)
    pathlib.Path(target).mkdir(parents=True, exist_ok=True)
    run("mount", "--bind", str(source), target)


def mount_all(node):
    # Private first, so that nothing reaches the machine; shared then, as mount propagation of
    # volumes needs it.
    run("mount", "--make-rprivate", "/")
    run("mount", "--make-rshared", "/")
    run("mount", "-t", "tmpfs", "-o", f"mode=755,size={RUN_SIZE}", "weft-run", "/run")
    for name in ("netns", "lock", "containerd"):
        pathlib.Path("/run", name).mkdir()
    upper, work = node.folder / "var-lib", node.folder / "var-lib.work"
    upper.mkdir()
    work.mkdir()
    run("mount", "-t", "overlay", "-o", f"lowerdir=/var/lib,upperdir={upper},workdir={work}",
        "weft-var-lib", "/var/lib")
    # Not through the overlay: containers' file systems are overlays themselves.
    bind(node.folder / "kubelet", daemons.KUBELET)
    bind(node.folder / "containerd", "/var/lib/containerd")
    bind(node.folder / "var-log", "/var/log")
    for target, kind in FILE_SYSTEMS.items():
        if os.path.isdir(target) and not os.listdir(target):
            subprocess.run(["mount", "-t", kind, kind, target], check=False)


def show_sysctls(node):
    folder = node.folder / "sysctl"
    folder.mkdir()
    for name, value in WANTED_BY_KUBELET.items():
        file = folder / name.replace("/", ".")
        file.write_text(value + "\n")
        run("mount", "--bind", str(file), f"/proc/sys/{name}")


def set_up_network(node):
    run("hostname", node.name)
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{node.address}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    # A route, though it leads nowhere: the API server and the kubelet look for their address there.
    run("ip", "route", "add", "default", "dev", "eth0")
    for other in node.others():
        run("ip", "route", "add", other.pods, "via", other.address)
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # Answers between pods of one bridge pass by the translation of addresses only so.
    on_bridges = pathlib.Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if on_bridges.exists():
        on_bridges.write_text("1")


def wait_for_containerd():
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(CONTAINERD):
        if time.monotonic() > deadline:
            sys.exit("containerd does not start")
        time.sleep(POLL)


class Daemons:
    """The node's daemons, which are started again when they end, as a service manager does."""

    def __init__(self, node):
        self.commands = daemons.commands(node)
        self.logs, self.pids = node.folder / "log", node.folder / "pid"
        self.logs.mkdir()
        self.pids.mkdir()
        self.names = {}  # by pid

    def start(self, name):
        with open(self.logs / f"{name}.log", "ab") as log:
            process = subprocess.Popen(self.commands[name], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        self.names[process.pid] = name
        (self.pids / name).write_text(f"{process.pid}\n")

    def start_all(self):
        for name in self.commands:
            if name == "kubelet":
                wait_for_containerd()
            self.start(name)

    def reap(self):
        """Never returns."""
        while True:
            pid, status = os.wait()
            if pid in self.names:
                name = self.names.pop(pid)
                print(f"{name} ended with status {os.waitstatus_to_exitcode(status)}; it is started "
                      "again", flush=True)
                time.sleep(BACK_OFF)
                self.start(name)


def main(number):
    node = Node(int(number))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mount_all(node)
    show_sysctls(node)
    daemons.write_configs(node)
    if not sys.stdin.readline():
        sys.exit("there is no cable")
    set_up_network(node)
    services = Daemons(node)
    services.start_all()
    node.started.touch()
    services.reap()


if __name__ == "__main__":
    main(*sys.argv[1:])
