#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev cluster: a real Kubernetes on this machine, for tests. See docs/operations.md.

  build                    the Go programs, into the cache (up does it too)
  up [--nodes N]           start; does nothing when it is up with as many nodes
  down                     end everything; says what is left behind, and fails if anything is
  status                   what runs, and daemons that ended
  kubectl ARGUMENTS...     as the cluster's administrator
  helm ARGUMENTS...        the same
  load IMAGE.tar...        put images into every node
  run COMMAND...           in the first node's network, with the machine's files
  node NAME COMMAND...     in all namespaces of a node
  check                    what of a cluster is on this machine; fails if anything is
"""

import json
import shutil
import subprocess
import sys
import time

from deploy.images.pack import CannotPack, Image
from tests.cluster import groups, inside, machine, pki, programs, storage
from tests.cluster.settings import (DNS_IMAGE, HERE, MACHINE, MAX_NODES, Node, PATIENCE, PAUSE_IMAGE, POLL, READY,
                                    STATE, TOP)


class Failed(Exception):
    """A cluster does not start; the text says why."""


def running_nodes():
    nodes = [Node(number) for number in range(1, MAX_NODES + 1)]
    return [node for node in nodes if inside.first_process(node)]


class Progress:
    """Says how long each step took since the start."""

    def __init__(self):
        self.start = time.monotonic()

    def say(self, text):
        print(f"cluster: {time.monotonic() - self.start:5.1f} s  {text}", flush=True)

    def wait_for(self, what, condition, nodes):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            for node in nodes:
                if not inside.first_process(node):
                    raise Failed(f"{what}: {node.name} ended: {log_of(node)}")
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {PATIENCE:.0f} s; logs are in "
                             f"{' '.join(str(node.folder / 'log') for node in nodes)}")
            time.sleep(POLL)
        self.say(what)


def log_of(node):
    return (node.folder / "node.log").read_text(encoding="utf-8", errors="replace")[-2000:].strip()


def succeeds(*words):
    return inside.kubectl(*words, check=False).returncode == 0


# --- up

def start_node(node):
    """Starts the first process of a node; it waits for its cable. Returns the process."""
    node.folder.mkdir()
    groups.make(node.group)
    command = ["unshare", "--mount", "--net", "--uts", "--ipc", sys.executable, "-B",
               HERE / "node.py", str(node.number)]
    with open(node.folder / "node.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                   env=inside.environment(), start_new_session=True, text=True,
                                   preexec_fn=lambda: groups.enter(f"{node.group}/system"))
    inside.write_record(node, process.pid)
    return process


def connect(processes, progress, nodes):
    """Makes the cable: a pair of devices, one end in each node. A single node has both ends."""
    here = [f"/proc/{process.pid}/ns/net" for process in processes]
    ours = machine.network_of("self")
    progress.wait_for("namespaces", lambda: all(machine.network_of(process.pid) not in (None, ours)
                                                for process in processes), nodes)
    far = ["name", "eth0", "netns", str(processes[1].pid)] if len(processes) > 1 else \
        ["name", "eth0-end"]
    subprocess.run(["nsenter", f"--net={here[0]}", "--", "ip", "link", "add", "eth0", "type", "veth",
                    "peer", *far], check=True)
    if len(processes) == 1:
        subprocess.run(["nsenter", f"--net={here[0]}", "--", "ip", "link", "set", "eth0-end", "up"],
                       check=True)
    for process in processes:
        process.stdin.write("connected\n")
        process.stdin.close()


def pack_base_images():
    """The images without which there is no cluster, as files."""
    pause = Image(PAUSE_IMAGE, entrypoint=["/usr/bin/catatonit", "-P"])
    pause.program(shutil.which("catatonit"), "usr/bin/catatonit")
    dns = Image(DNS_IMAGE, entrypoint=["/usr/bin/coredns"])
    dns.program(programs.folder() / "coredns", "usr/bin/coredns")
    paths = []
    for image in (pause, dns):
        paths.append(STATE / "images" / f"{image.name.split('/')[-1].split(':')[0]}.tar")
        image.write(paths[-1])
    return paths


def start(count):
    progress = Progress()
    STATE.mkdir(parents=True)
    STATE.chmod(0o711)
    machine.remember()
    nodes = [Node(number) for number in range(1, count + 1)]
    pki.make(nodes)
    progress.say("certificates")
    connect([start_node(node) for node in nodes], progress, nodes)
    progress.wait_for("daemons started", lambda: all(node.started.exists() for node in nodes), nodes)
    progress.wait_for("containerd answers", lambda: all(
        inside.containerd_client("version", node=node, check=False).returncode == 0
        for node in nodes), nodes)
    for image in pack_base_images():
        inside.load(image, nodes)
    progress.say("base images")
    progress.wait_for("API server ready", lambda: succeeds("get", "--raw", "/readyz"), nodes)
    for node in nodes:
        progress.wait_for(f"{node.name} ready", lambda node=node: succeeds(
            "wait", "--for=condition=Ready", f"node/{node.name}", "--timeout=1s"), nodes)
    inside.kubectl("apply", "-f", HERE / "manifests/coredns.yaml")
    inside.kubectl("apply", "-f", "-", input=storage.make(nodes))
    progress.wait_for("cluster DNS ready", lambda: succeeds(
        "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=1s"), nodes)
    progress.wait_for("default service account", lambda: succeeds(
        "-n", "default", "get", "serviceaccount", "default"), nodes)
    READY.touch()


def up(words):
    count = 1
    if words[:1] == ["--nodes"] and len(words) == 2 and words[1].isdigit():
        count = int(words[1])
    elif words:
        raise SystemExit(__doc__)
    if not 1 <= count <= MAX_NODES:
        raise Failed(f"there can be 1 to {MAX_NODES} nodes")
    machine.check()
    with programs.locked("up"):
        if READY.exists() and len(running_nodes()) == count:
            print("cluster: it is up")
            return 0
        if end():
            raise Failed("what was there before does not go away")
        programs.build()
        try:
            start(count)
        except (Failed, subprocess.CalledProcessError):
            print("cluster: it stays as it is, to be looked at; end it with: ./dev cluster down",
                  file=sys.stderr)
            raise
    return 0


# --- down

def end():
    """Ends everything and removes it. Returns what is left, a line for each; prints nothing."""
    before = json.loads(MACHINE.read_text()) if MACHINE.exists() else None
    spaces = machine.namespaces()
    groups.end_processes()
    groups.remove()
    # The namespaces' mounts go with their last process, but not at once.
    deadline = time.monotonic() + PATIENCE
    while machine.processes_in(spaces) and time.monotonic() < deadline:
        time.sleep(POLL)
    shutil.rmtree(STATE, ignore_errors=True)
    return machine.leftovers(before, spaces)


def down(words):
    if words:
        raise SystemExit(__doc__)
    begin = time.monotonic()
    left = end()
    for line in left:
        print(f"cluster: left behind: {line}", file=sys.stderr)
    if not left:
        print(f"cluster: down in {time.monotonic() - begin:.1f} s; nothing is left behind")
    return 1 if left else 0


# --- the rest

def status(_):
    nodes = running_nodes()
    if not nodes:
        print("cluster: down")
        return 1
    for node in nodes:
        said = log_of(node)
        print(f"{node.name}: first process {inside.first_process(node)}, {len(groups.processes())} "
              f"processes in all, logs in {node.folder}/log" + (f"\n{said}" if said else ""))
    print(inside.kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide").stdout, end="")
    return 0


def build(_):
    print(programs.build())
    return 0


def load(words):
    nodes = running_nodes()
    if not nodes:
        raise inside.Down("the cluster is down; start it with: ./dev cluster up")
    for image in words:
        inside.load(image, nodes)
    return 0


def in_node(words):
    names = {node.name: node for node in running_nodes()}
    if not words or words[0] not in names:
        raise Failed(f"which node? There are: {' '.join(names) or 'none'}")
    inside.execute(words[1:] or ["sh"], names[words[0]], inside.EVERYTHING)


def check(_):
    left = machine.leftovers()
    print("\n".join(left) or "cluster: nothing is on this machine")
    return 1 if left else 0


COMMANDS = {
    "build": build, "up": up, "down": down, "status": status, "load": load, "node": in_node,
    "check": check,
    "kubectl": lambda words: inside.execute(["kubectl", *words]),
    "helm": lambda words: inside.execute(["helm", *words]),
    "run": inside.execute,
}


def main(argv):
    if not argv or argv[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return COMMANDS[argv[0]](argv[1:])
    except (Failed, CannotPack, TimeoutError, groups.Missing, inside.Down,
            programs.BuildFailed) as error:
        print(f"cluster: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("cluster: interrupted; end what has begun with: ./dev cluster down", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"cluster: {' '.join(map(str, error.cmd))}: {error.returncode}\n{error.stderr or ''}",
              file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
