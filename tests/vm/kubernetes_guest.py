#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubernetes_guest.py PROGRAMS IMAGE...: runs in a guest that is a node of the test cluster.

The guest (kmod/qemu) was started in the network of the cluster's first node, which it reaches
through its gateway: connections to any address, a service's too, are made there. The guest
therefore needs no kube-proxy. It sees the machine's files as they were: certificates and images are
read from where they are. Starts containerd and the kubelet, as on any node of the cluster
(tests/cluster/daemons.py) but with control groups of version 2, and stays until there is /out/end.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from tests.cluster import daemons
from tests.cluster.settings import CONTAINERD, MAX_NODES, PATIENCE, POLL, Node

NODE = Node(MAX_NODES + 1)
PORT = 10350  # the kubelet's: out there 10250 is the first node's, at all addresses
MODULES = pathlib.Path("/var/lib/weft-modules")  # the chart's agent.kernel.modulesFolder
OUT = pathlib.Path("/out")
END = "end"  # a file in it
DEVICES = ("virtio_net", "bridge", "veth", "nft_chain_nat", "nft_masq")
# Addresses are QEMU's. The node's own is where the API server finds the kubelet; nothing is routed to it in here.
LINKS = f"""\
link set eth0 up
address add 10.0.2.15/24 dev eth0
address add {NODE.address}/32 dev lo
route add default via 10.0.2.2 src 10.0.2.15
"""
# No machine outside knows the pods' addresses.
RULES = f"""\
table ip weft-test {{
  chain out {{
    type nat hook postrouting priority srcnat
    ip saddr {NODE.pods} oifname "eth0" masquerade
  }}
}}
"""
# The taint keeps the scheduler's pods away: pods of a test name this node.
TAINT = {"key": "weft.dev/guest", "effect": "NoSchedule"}
# Memory is the only disk here.
EVICTION = {"memory.available": "10Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%"}


def run(*words, **more):
    subprocess.run(list(map(str, words)), check=True, **more)


def say(text):
    print(f"{time.monotonic():6.1f} s  {text}", flush=True)


def set_up_network():
    run("hostname", NODE.name)
    run("modprobe", "-a", *DEVICES)
    run("ip", "-batch", "-", input=LINKS, text=True)
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    run("nft", "-f", "-", input=RULES, text=True)


def mount_all():
    # Containers' file systems are overlays, which do not stand upon one.
    for folder in (daemons.KUBELET, "/var/lib/containerd"):
        os.makedirs(folder, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "weft-test", folder)


def write_configs():
    NODE.folder.mkdir(parents=True)
    daemons.write_configs(NODE)
    config = daemons.kubelet_config(NODE) | {
        "port": PORT, "cgroupRoot": "/", "registerWithTaints": [TAINT], "evictionHard": EVICTION}
    (NODE.folder / "kubelet.yaml").write_text(json.dumps(config))


def put_module():
    folder = MODULES / os.uname().release
    folder.mkdir(parents=True)
    shutil.copy(os.environ["WEFT_MODULE"], folder / "weft.ko")


def start(name):
    with open(OUT / f"{name}.log", "wb") as log:
        return subprocess.Popen(daemons.commands(NODE)[name], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log)


def wait_for_containerd():
    client = ["ctr", f"--address={CONTAINERD}", "version"]
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(client, check=False, capture_output=True).returncode != 0:
        if time.monotonic() > deadline:
            sys.exit("containerd does not start")
        time.sleep(POLL)


def main(programs, *images):
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    set_up_network()
    mount_all()
    write_configs()
    put_module()
    running = {"containerd": start("containerd")}
    wait_for_containerd()
    say("containerd answers")
    for image in images:
        run("ctr", f"--address={CONTAINERD}", "--namespace=k8s.io", "images", "import", image)
        say(pathlib.Path(image).name)
    running["kubelet"] = start("kubelet")
    while not (OUT / END).exists():
        for name, process in running.items():
            if process.poll() is not None:
                sys.exit(f"{name} ended with status {process.returncode}")
        time.sleep(1)
    say("told to end")


if __name__ == "__main__":
    main(*sys.argv[1:])
