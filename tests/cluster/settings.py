# SPDX-License-Identifier: Apache-2.0
"""What the test cluster's scripts agree on: places, names, addresses, limits. Every limit is here.

All addresses are from 198.18.0.0/15, which is set apart for tests of networks and routed nowhere;
the nodes' network has no way out in any case.
"""

import dataclasses
import hashlib
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent

# Built programs: outside the tree, since they outlive a clone. May be deleted at any time.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / \
    "weft" / "cluster"
# All that a cluster writes, removed with it: a folder of its own in any case. Must be on a file
# system that overlayfs can write to.
STATE = pathlib.Path(os.environ.get("WEFT_CLUSTER_STATE") or TOP / "build").resolve() / "cluster"
PKI = STATE / "pki"
READY = STATE / "ready"  # there once `up` came to its end
MACHINE = STATE / "machine.json"  # how the machine was before (machine.py)
ADMIN = PKI / "admin.conf"

# One name for a state folder, so that clusters of two clones do not meet.
GROUP = "weft-" + hashlib.sha256(bytes(STATE)).hexdigest()[:8]
CLIENTS = f"{GROUP}/clients"  # kubectl and what else was started from outside

SERVICES = "198.19.0.0/16"
API_SERVICE = "198.19.0.1"  # the first of SERVICES, by Kubernetes' rule
DNS_SERVICE = "198.19.0.10"  # also in manifests/coredns.yaml
PODS = "198.18.0.0/17"
DOMAIN = "cluster.local"  # also in manifests/coredns.yaml
MAX_NODES = 2  # they are joined by one cable

CONTAINERD = "/run/containerd/containerd.sock"  # in a node
PAUSE_IMAGE = "localhost/weft-test/pause:1"
DNS_IMAGE = "localhost/weft-test/coredns:1"  # also in manifests/coredns.yaml

# In seconds; what takes longer hangs. Machines are slow, so these are generous.
PATIENCE = float(os.environ.get("WEFT_PATIENCE", "240"))
POLL = 0.1
BACK_OFF = 1  # before a daemon that ended is started again
RUN_SIZE = "2g"  # /run of a node, a tmpfs: etcd's data, which 10,000 objects do not fill
VOLUMES_PER_NODE = 4  # as many claims as a test of one node makes
VOLUME_SIZE = "100Gi"  # said, not enforced


@dataclasses.dataclass(frozen=True)
class Node:
    """One node: a set of mount, network, UTS and IPC namespaces, held by its first process."""
    number: int

    @property
    def name(self):
        return f"node{self.number}"

    @property
    def address(self):
        return f"198.18.255.{self.number}"

    @property
    def pods(self):
        return f"198.18.{self.number}.0/24"

    @property
    def folder(self):
        return STATE / self.name

    @property
    def group(self):
        """Control group under which the kubelet puts the pods, and `system` the daemons."""
        return f"{GROUP}/{self.name}"

    @property
    def record(self):
        """File with pid and start time of the node's first process."""
        return self.folder / "process"

    @property
    def started(self):
        return self.folder / "started"

    def others(self):
        return [Node(number) for number in range(1, MAX_NODES + 1) if number != self.number]


CONTROL_PLANE = Node(1)
API = f"https://{CONTROL_PLANE.address}:6443"
