# SPDX-License-Identifier: Apache-2.0
"""The machine around the cluster: what it must have, how it was before, and what is left after.

`look` is taken before a start and after an end; between them a test cluster may change nothing of it.
"""

import json
import os
import pathlib
import shutil
import subprocess

from tests.cluster import groups
from tests.cluster.settings import GROUP, MACHINE, STATE

TOOLS = ("containerd", "containerd-shim-runc-v2", "runc", "ctr", "nft", "iptables", "conntrack",
         "catatonit", "openssl", "nsenter", "unshare", "ip", "mount")
NAMESPACES = ("mnt", "net", "uts", "ipc")
# Places where daemons of a node write by default, and where ours must not.
PLACES = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/run/containerd",
          "/run/netns", "/run/cni-ipam", "/run/etcd", "/etc/cni", "/opt/cni", "/opt/containerd",
          "/var/log/pods", "/var/log/containers", "/etc/kubernetes", "/usr/libexec/kubernetes")
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
           "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
           "net/netfilter/nf_conntrack_max")


def check():
    """Raises groups.Missing, with what to do, when a cluster cannot run here."""
    if os.geteuid() != 0:
        raise groups.Missing("the test cluster makes namespaces and mounts: run it as root")
    groups.hierarchies()
    path = f"/usr/sbin:/sbin:{os.environ['PATH']}"
    absent = [tool for tool in TOOLS if not shutil.which(tool, path=path)]
    if absent:
        raise groups.Missing(f"there is no {' '.join(absent)}: run ./dev setup")


def output(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def sysctl(name):
    try:
        return pathlib.Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def look():
    """The machine's own network devices of a cluster's kinds, tables, places and settings."""
    devices = [line.split(":")[1].split("@")[0].strip()
               for line in output("ip", "-oneline", "link").splitlines()]
    return {
        "network devices": [name for name in devices if name.startswith(("veth", "cni", "eth0-end"))],
        "nftables": [line for line in output("nft", "list", "tables").splitlines() if "kube" in line],
        "places": [place for place in PLACES if os.path.exists(place)],
        "sysctls": {name: sysctl(name) for name in SYSCTLS},
    }


def remember():
    MACHINE.write_text(json.dumps(look()))


def network_of(process):
    """The network namespace of a process, by id or "self"; None when it is gone."""
    try:
        return os.readlink(f"/proc/{process}/ns/net")
    except OSError:
        return None


def namespaces():
    """Namespaces that the cluster's processes are in, but not this process's: 'net:[4026532000]'."""
    found = set()
    for pid in groups.processes():
        for kind in NAMESPACES:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                continue  # it ended
    return found - {os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}


def processes_in(spaces):
    """Processes, of whatever group, that hold a namespace of the cluster."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        for kind in NAMESPACES:
            try:
                inside = os.readlink(folder / "ns" / kind) in spaces
            except OSError:
                break
            if inside:
                found.append(int(folder.name))
                break
    return found


def differences(before):
    after = look()
    said = []
    for what, was in before.items():
        if isinstance(was, dict):
            said += [f"{what}: {name} was {value}, is {after[what][name]}"
                     for name, value in was.items() if after[what][name] != value]
        else:
            said += [f"{what}: {name}" for name in after[what] if name not in was]
    return said


def leftovers(before=None, spaces=frozenset()):
    """What of the cluster is still on the machine, a line for each; empty when nothing is."""
    said = [f"process {pid} in a control group of the cluster" for pid in groups.processes()]
    said += [f"process {pid} in a namespace of the cluster" for pid in processes_in(spaces)]
    said += [f"control group {folder}" for folder in groups.folders()]
    mounts = pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    said += [f"mount {line}" for line in mounts if f"{STATE}/" in line or GROUP in line]
    if STATE.exists():
        said.append(f"folder {STATE}")
    return said + (differences(before) if before else [])
