# SPDX-License-Identifier: Apache-2.0
"""What the tests share that have weft in their cluster: its installation, namespaces with the library,
Traces, programs that say what they emitted, counters."""

import json
import os
import pathlib
import re

from tests.cluster.weft_cluster import PARTS, PATIENCE, RESTRICTED, ClusterTest, get, install_weft, kubectl

INJECT = {"weft.dev/inject": "enabled"}
# kubectl's flag to act as the controller, which alone may write the library and sessions.
AS_CONTROLLER = "--as=system:serviceaccount:weft:weft-controller"


def trace(name, app, **spec):
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "Trace", "metadata": {"name": name},
            "spec": {"pods": {"selector": {"matchLabels": {"app": app}}},
                     "user": {"events": [{"name": "shop:*"}]}, **spec}}


def metric(text, name, namespace, name_of_trace):
    """Sum over all other labels."""
    labels = rf'{{[^}}]*namespace="{namespace}",[^}}]*trace="{name_of_trace}"[^}}]*}}'
    return sum(int(float(m)) for m in re.findall(rf"^{name}{labels} (\S+)$", text, re.MULTILINE))


def container_pids(namespace, name, program=""):
    """The processes of a pod's container, as the machine numbers them; none if it does not run, or the pod is gone.
    With `program` only those of this name."""
    found = kubectl("-n", namespace, "get", "pod", name, "-o", "json", "--ignore-not-found").stdout
    status = json.loads(found)["status"].get("containerStatuses", [{}])[0] if found else {}
    if "running" not in status.get("state", {}):
        return []
    container = status["containerID"].partition("://")[2]
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and container in (folder / "cgroup").read_text(encoding="utf-8") and \
                    program in ("", (folder / "comm").read_text(encoding="utf-8").strip()):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def send_signal(pids, number):
    """To those of the processes that still run: the kernel or a keeper may end the others meanwhile."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


class WeftTest(ClusterTest):
    LOADED = ("weft-agent", "weft-controller", "weft-webhook", "weft-relay", "shell", "shop", "tenant")
    READY = PARTS  # that are waited for
    VALUES = ""    # of the chart, beside the usual ones

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        install_weft(*cls.READY, values=cls.VALUES)

    def injected_namespace(self, name, labels=None):
        """Labels: RESTRICTED, unless told otherwise."""
        self.namespace(name, INJECT | (RESTRICTED if labels is None else labels))
        self.wait_for(lambda: get(name, "configmap", "-l", "weft.dev/library=current")["items"],
                      "the library does not come")
        return name

    def create(self, *objects, namespace, user, check=True):
        """As apply(), as the user of a flag of kubectl: --as=NAME."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return kubectl("-n", namespace, user, "create", "-f", "-", text=text, check=check)

    def pods_of(self, component):
        """The names of the pods of a part of weft, also of those that are on their way out."""
        pods = get("weft", "pods", "-l", f"app.kubernetes.io/component={component}")["items"]
        return [pod["metadata"]["name"] for pod in pods]

    def metrics(self, component):
        return kubectl("get", "--raw", f"/api/v1/namespaces/weft/pods/{self.pods_of(component)[0]}"
                       ":8080/proxy/metrics").stdout

    def wait_ready(self, namespace, name):
        kubectl("-n", namespace, "wait", "--for=condition=Ready", f"trace/{name}", f"--timeout={PATIENCE:.0f}s")

    def condition(self, namespace, name, kind="KernelTracing", resource="trace"):
        """The condition `kind` of a Trace, or of another resource that has conditions."""
        conditions = get(namespace, resource, name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {"status": "", "reason": ""})

    def end_by_time(self, namespace, name):
        """Ended by its duration, a Trace stays, with its counts; which are returned."""
        kubectl("-n", namespace, "patch", "trace", name, "--type=merge", "-p",
                '{"spec":{"duration":"1s"}}')
        self.wait_for(lambda: get(namespace, "trace", name)["status"]["phase"] == "Completed",
                      "the Trace does not end")
        return get(namespace, "trace", name)["status"]["events"]

    def emitted(self, namespace, name, *container):
        """The last line "events N" that a program printed; of a pod with several containers: -c NAME."""
        logs = kubectl("-n", namespace, "logs", name, *container).stdout
        found = re.findall(r"^events (\d+)$", logs, re.MULTILINE)
        return int(found[-1]) if found else 0

    def run_tenant(self, namespace, rounds=1, pod=("tenant",)):
        """Lets a tenant emit `rounds` more rounds; returns all events that it has emitted in its life. pod: its name,
        and of a pod with several containers -c NAME."""
        for _ in range(rounds):
            before = self.emitted(namespace, *pod)
            kubectl("-n", namespace, "exec", *pod, "--", "kill", "-USR1", "1")
            self.wait_for(lambda before=before: self.emitted(namespace, *pod) > before,
                          "the tenant's round does not end")
        return self.emitted(namespace, *pod)
