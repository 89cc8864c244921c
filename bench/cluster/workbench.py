# SPDX-License-Identifier: Apache-2.0
"""Shared parts of bench/cluster: requests to the API server without starting a client, the relay's
store seen from outside, and the times of containers."""

import contextlib
import datetime
import http.client
import json
import pathlib
import socket
import subprocess
import time

from tests.cluster import groups, inside, settings
from tests.cluster.relay_files import has_events
from tests.cluster.weft_cluster import PATIENCE

TOP = pathlib.Path(__file__).resolve().parents[2]

POLL = 0.002  # a fraction of what is measured


def wait_for(what, why, pause=0.1):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if result := what():
            return result
        time.sleep(pause)
    raise SystemExit(f"bench: {why}")


class Api:
    """Calls the API server over a socket of this machine, through a `kubectl proxy` that is started
    once."""

    def __init__(self, folder):
        self.socket = str(pathlib.Path(folder) / "api.sock")
        self.proxy = subprocess.Popen(
            inside.command(["kubectl", "proxy", f"--unix-socket={self.socket}"]),
            env=inside.environment(), stdout=subprocess.DEVNULL,
            preexec_fn=lambda: groups.enter(settings.CLIENTS))
        wait_for(pathlib.Path(self.socket).exists, "kubectl proxy does not start")

    def close(self):
        self.proxy.terminate()
        self.proxy.wait()

    def request(self, method, path, body=None):
        """Returns the status and the answer's object."""
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(connection):
            connection.sock.connect(self.socket)
            connection.request(method, path, body=None if body is None else json.dumps(body),
                               headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def create(self, path, body):
        status, answer = self.request("POST", path, body)
        if status != 201:
            raise SystemExit(f"bench: POST {path}: {status} {answer.get('message')}")
        return answer

    def delete(self, path):
        """Deletes an object, and waits until it is gone."""
        self.request("DELETE", path, {"gracePeriodSeconds": 0})
        wait_for(lambda: self.request("GET", path)[0] == 404, f"{path} does not go", pause=0.02)


def begins_in(store, namespace, trace):
    """Waits until the relay's folder has an event of that Trace."""
    wait_for(lambda: any(map(has_events, (store / namespace / trace).rglob("user_*"))),
             f"no event of {namespace}/{trace} reaches the relay", pause=POLL)


def first_output(namespace, name, uid):
    """Returns when the runtime got the first line that the container printed, in seconds since
    1970. It reads the container's log, which has the time of each line. kubectl would have it too,
    after asking the kubelet."""
    log = settings.STATE / "node1/var-log/pods" / f"{namespace}_{name}_{uid}" / "main/0.log"
    line = wait_for(lambda: log.exists() and log.read_text(encoding="utf-8"),
                    f"{name} prints nothing", pause=0.01)
    day, _, fraction = line.split()[0].partition(".")
    whole = datetime.datetime.fromisoformat(day + "+00:00").timestamp()
    return whole + float("0." + fraction.rstrip("Z"))
