# SPDX-License-Identifier: Apache-2.0
"""A node of a cluster in a guest. All parts of weft are real: keeper, agent, consumers, relay and
weft.ko. Control groups are laid out as by a kubelet. The test replaces the API server: it answers
the agent's watches (HTTP of its own, on loopback) and takes the statuses that the agent writes."""

import collections
import contextlib
import glob
import http.server
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import urllib.parse
import urllib.request
import uuid

from tests.local.weft_local import BUILD, PATIENCE, LocalTest, children_of, free_port, name_of
from tests.vm import kernel_trace

CGROUPS = pathlib.Path("/sys/fs/cgroup")
NODE = "n1"
WATCH = 40  # seconds without news, then a watch is over in good order
LISTENS = re.compile(r"control \S+:(\d+) data \S+:(\d+) http \S+:(\d+)")


class Api:
    """Pods and TraceSessions of one node, in the API server's form."""

    def __init__(self):
        self.objects = {"pods": {}, "tracesessions": {}}
        self.deleted = collections.defaultdict(dict)
        self.watchers = {"pods": [], "tracesessions": []}
        self.statuses = {}
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, kind, item, event=None):
        with self.lock:
            known = self.objects[kind]
            uid = item["metadata"]["uid"]
            said = event or ("MODIFIED" if uid in known else "ADDED")
            known[uid] = item
            self.deleted[kind].pop(uid, None)
            if said == "DELETED":
                self.deleted[kind][uid] = known.pop(uid)
            for watcher in self.watchers[kind]:
                watcher.put({"type": said, "object": item})

    def handler(self):
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, body):
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                try:
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # who asked was killed
                    self.close_connection = True

            def do_GET(self):  # pylint: disable=invalid-name
                where = urllib.parse.urlparse(self.path)
                kind = where.path.rsplit("/", 1)[-1]
                if "watch" in urllib.parse.parse_qs(where.query):
                    self.stream(kind)
                    return
                with api.lock:
                    items = list(api.objects[kind].values())
                self.answer({"items": items, "metadata": {"resourceVersion": "1"}})

            def stream(self, kind):
                events = queue.Queue()
                with api.lock:
                    # Changes between list and watch, or between two watches, are sent again.
                    for said, items in (("ADDED", api.objects), ("DELETED", api.deleted)):
                        for item in items[kind].values():
                            events.put({"type": said, "object": item})
                    api.watchers[kind].append(events)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    with contextlib.suppress(queue.Empty):
                        while True:
                            line = json.dumps(events.get(timeout=WATCH)).encode() + b"\n"
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True
                with api.lock:
                    api.watchers[kind].remove(events)

            def do_PATCH(self):  # pylint: disable=invalid-name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with api.lock:
                    api.statuses[body["metadata"]["uid"]] = body["status"]
                self.answer(body)

        return Handler


class Tenant:
    """A pod of one container: its control groups, the API server's object, and programs in it."""

    def __init__(self, namespace, name, driver="systemd", cgroups=CGROUPS):
        self.namespace, self.name, self.uid = namespace, name, str(uuid.uuid4())
        self.container = uuid.uuid4().hex + uuid.uuid4().hex
        sliced = self.uid.replace("-", "_")
        if driver == "systemd":
            pod = cgroups / "kubepods.slice/kubepods-burstable.slice" / \
                f"kubepods-burstable-pod{sliced}.slice"
            self.cgroup = pod / f"cri-containerd-{self.container}.scope"
        else:
            self.cgroup = cgroups / "kubepods/besteffort" / f"pod{self.uid}" / self.container
        self.cgroup.mkdir(parents=True)

    def object(self):
        status = {"name": "main", "containerID": f"containerd://{self.container}"}
        return {"metadata": {"uid": self.uid, "namespace": self.namespace, "name": self.name,
                             "labels": {"app": self.name}},
                "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
                "status": {"phase": "Running", "containerStatuses": [status]}}

    def run(self, *command, **options):
        """Runs a command in the tenant's group, from its first own instruction on."""
        enter = f"echo $$ > {self.cgroup}/cgroup.procs; exec \"$@\""
        return subprocess.Popen(["sh", "-c", enter, "sh", *map(str, command)], **options)


def load_module(test):
    """Loads weft.ko until the test ends. If this is called first, it is unloaded after all
    descriptors of the module are closed."""
    subprocess.run(["insmod", os.environ["WEFT_MODULE"]], check=True)
    test.addCleanup(subprocess.run, ["rmmod", "weft"], check=True)


def order(namespace, relay, kernel, state="Active", cluster_wide=False, **spec):
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "TraceSession",
            "metadata": {"name": "t-1", "namespace": namespace, "uid": f"session-{namespace}",
                         "generation": 1 if state == "Active" else 2},
            "spec": {"nodeName": NODE, "traceName": "t", "traceUid": str(uuid.uuid4()),
                     "traceGeneration": 1, "state": state, "clusterWide": cluster_wide,
                     "relay": {"name": "r", "control": f"127.0.0.1:{relay[0]}",
                               "data": f"127.0.0.1:{relay[1]}"},
                     "record": {"pods": {}, "kernel": kernel, **spec}}}


class NodeTest(LocalTest):
    """A test with a relay, and a node that can be started with options."""

    health_port = 8080  # the agent's
    keeper_options = ()
    keeper_group = None  # folder of the control group in which the keeper is started
    kernel_mode = "auto"
    api_class = Api

    def setUp(self):
        super().setUp()
        self.api = self.api_class()
        self.addCleanup(self.api.server.server_close)
        self.addCleanup(self.api.server.shutdown)
        self.keeper = None
        self.tenants = []
        (self.folder / "relay").mkdir()
        self.relay, self.relay_http = (free_port(), free_port()), 0
        self.relay_process = None
        self.start_relay()

    def start_relay(self):
        """Restarts it on the ports that it had before."""
        control, data = (f"127.0.0.1:{port}" for port in self.relay)
        relay = subprocess.Popen(
            [str(BUILD / "bin/weft-relay"), "--data-dir", str(self.folder / "relay"), "--control",
             control, "--data", data, "--http", "127.0.0.1:0", *self.relay_options()],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.relay_environment())
        self.running.append(relay)
        self.addCleanup(relay.stderr.close)
        line = relay.stderr.readline()
        found = LISTENS.search(line)
        self.assertIsNotNone(found, line)
        *ports, self.relay_http = map(int, found.groups())
        self.relay = tuple(ports)
        self.relay_process = relay

    def relay_options(self):
        """Further ones."""
        return ()

    def set_relay_clock(self, off):
        """Sets the clock of the next relays, and of the one that runs if this was called before its start. `off`: how
        far it is off, such as "+1h"."""
        new = self.folder / "clock.new"
        new.write_text(f"{off}\n")
        new.rename(self.folder / "clock")

    def relay_environment(self):
        """The monotonic clock and the times of files are not changed."""
        environment, clock = dict(os.environ), self.folder / "clock"
        if clock.exists():
            library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
            self.assertTrue(library, "needs libfaketime")
            environment |= {"LD_PRELOAD": library[0], "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
                            "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
        return environment

    def kill_relay(self):
        self.relay_process.kill()
        self.relay_process.wait()

    def tenant(self, namespace, name, **options):
        tenant = Tenant(namespace, name, **options)
        self.tenants.append(tenant)
        self.api.put("pods", tenant.object())
        return tenant

    def start_node(self, **kernel):
        """`kernel`: the agent's settings, WEFT_KERNEL_... in its environment."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        # The keeper passes no address on: in a pod it is in the environment, for a server with TLS.
        (programs / "weft-node-agent").write_text(
            f"#!/bin/sh\nexec {BUILD}/bin/weft-node-agent \"$@\" --server {self.api.address} "
            f"--run-dir {self.folder}/run --health-port {self.health_port}\n")
        (programs / "weft-node-agent").chmod(0o755)
        if not (programs / "weft-consumer").exists():
            (programs / "weft-consumer").symlink_to(BUILD / "bin/weft-consumer")
        for name in ("state", "kubelet"):
            (self.folder / name).mkdir(exist_ok=True)
        environment = dict(os.environ, NODE_NAME=NODE, WEFT_KERNEL=self.kernel_mode)
        environment.update({f"WEFT_KERNEL_{name.upper()}": str(v) for name, v in kernel.items()})
        enter = f"echo $$ > {self.keeper_group}/cgroup.procs; exec \"$@\""
        into_group = ["sh", "-c", enter, "sh"] if self.keeper_group else []
        self.keeper = subprocess.Popen(
            [*into_group, str(BUILD / "bin/weft-keeper"), "--bin", str(programs), "--state-dir",
             str(self.folder / "state"), "--kubelet-dir", str(self.folder / "kubelet"),
             *self.keeper_options],
            stdin=subprocess.DEVNULL, env=environment)
        self.running.append(self.keeper)

    def stop_node(self):
        self.keeper.send_signal(signal.SIGTERM)
        self.assertEqual(self.keeper.wait(PATIENCE), 0)

    def kill_agent(self):
        self.kill_daemon("weft-node-agent")

    def kill_daemon(self, name):
        """Returns a process that the keeper started again."""
        pid = self.wait_for(lambda: self.daemon(name), f"there is no {name}")
        with contextlib.suppress(ProcessLookupError):  # its keeper may have ended it
            os.kill(pid, signal.SIGKILL)
        self.wait_for(lambda: self.daemon(name) not in (None, pid), f"no {name} follows")

    def daemon(self, name):
        found = [pid for pid in children_of(self.keeper.pid) if name_of(pid) == name]
        return found[0] if found else None

    def status(self, namespace):
        with self.api.lock:
            return self.api.statuses.get(f"session-{namespace}", {})

    def condition(self, namespace, kind):
        """Returns (status, reason, message)."""
        for one in self.status(namespace).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def wait_condition(self, namespace, kind, *wanted):
        """Waits for the condition's status, and its reason if one is given; returns the message."""
        self.wait_for(lambda: self.condition(namespace, kind)[:len(wanted)] == wanted,
                      lambda: f"{kind} is {self.condition(namespace, kind)}")
        return self.condition(namespace, kind)[2]

    def wait_for(self, what, why="something expected did not happen"):
        try:
            return super().wait_for(what, "not in time")
        except AssertionError:
            self.fail(why() if callable(why) else why)

    def metrics(self, port=0):
        """Returns the agent's metrics, or those of the relay if its port is given."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.health_port}/metrics",
                                    timeout=PATIENCE) as answer:
            return answer.read().decode()

    def end(self, namespace, kernel, **spec):
        self.api.put("tracesessions", order(namespace, self.relay, kernel, "Draining", **spec))
        self.wait_condition(namespace, "Drained", "True")
        return self.status(namespace).get("events", {})

    def events(self, namespace):
        """Returns the events of the namespace's trace at the relay: (name, {field: value})."""
        return kernel_trace.events_in(self.folder / "relay" / namespace)

    def timed_events(self, namespace):
        """Returns the events of the namespace's trace with times: (ns since the epoch, name,
        fields)."""
        return kernel_trace.timed_events_in(self.folder / "relay" / namespace)

    def bytes_of(self, namespace):
        return kernel_trace.bytes_in(self.folder / "relay" / namespace)
