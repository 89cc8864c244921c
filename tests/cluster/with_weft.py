# SPDX-License-Identifier: Apache-2.0
"""What the tests share that have weft in their cluster: its installation, namespaces with the library,
Traces, programs that say what they emitted, counters."""

import json
import os
import pathlib
import re

from tests.cluster.weft_cluster import (PARTS, PATIENCE, RESTRICTED, ClusterTest, get, install_weft, kubectl,
                                        lacks_library)

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
    injected = frozenset()  # namespaces whose pods have the library

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        install_weft(*cls.READY, values=cls.VALUES)

    def injected_namespace(self, name, labels=None):
        """Labels: RESTRICTED, unless told otherwise."""
        self.namespace(name, INJECT | (RESTRICTED if labels is None else labels))
        self.wait_for(lambda: get(name, "configmap", "-l", "weft.dev/library=current")["items"],
                      "the library does not come")
        self.injected |= {name}
        return name

    def apply(self, *objects, namespace="default", check=True, library=True):
        """Makes pods of an injected namespace anew until they have the library: where the webhook is slow, or has not
        heard of the library yet, they are made without it. library=False: they stay as they are."""
        done = super().apply(*objects, namespace=namespace, check=check)
        wanted = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Pod" and
                  one["metadata"].get("labels", {}).get("weft.dev/inject") != "disabled"}
        if wanted and library and namespace in self.injected:
            self.wait_for(lambda: not self.make_missed_anew(namespace, wanted), "pods get no library")
        return done

    def make_missed_anew(self, namespace, wanted):
        """Deletes those of the pods that were made without the library, and makes them again. Returns their names."""
        missed = [one["metadata"]["name"] for one in get(namespace, "pods")["items"]
                  if one["metadata"]["name"] in wanted and lacks_library(one)]
        if missed:
            kubectl("-n", namespace, "delete", "pod", *missed, "--grace-period=0", "--force", "--ignore-not-found")
            super().apply(*(wanted[name] for name in missed), namespace=namespace)
        return missed

    def wait_for_right(self, namespace, user, verb, resource):
        """Waits until a user has a right: the API server heeds a new Role some time after it was made."""
        self.wait_for(lambda: kubectl("-n", namespace, user, "auth", "can-i", verb, resource,
                                      check=False).returncode == 0, f"{user} may not {verb} {resource}")

    def create(self, *objects, namespace, user, check=True):
        """As apply(), as the user of a flag of kubectl: --as=NAME."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return kubectl("-n", namespace, user, "create", "-f", "-", text=text, check=check)

    def pods_of(self, component):
        """The names of the pods of a part of weft, also of those that are on their way out."""
        pods = get("weft", "pods", "-l", f"app.kubernetes.io/component={component}")["items"]
        return [pod["metadata"]["name"] for pod in pods]

    def metrics(self, component):
        """Returns the metrics of a part of weft, which does not answer while it starts."""
        def read():
            return [done.stdout for one in self.pods_of(component) if (done := kubectl(
                "get", "--raw", f"/api/v1/namespaces/weft/pods/{one}:8080/proxy/metrics", check=False)).returncode == 0]
        return self.wait_for(read, f"{component} does not answer")[0]

    def wait_ready(self, namespace, name, traced=0):
        """Waits until a Trace is ready, and until at least `traced` pods are traced: a node that has not heard of a
        pod yet is ready, too."""
        kubectl("-n", namespace, "wait", "--for=condition=Ready", f"trace/{name}", f"--timeout={PATIENCE:.0f}s")
        if traced:
            self.wait_for(lambda: get(namespace, "trace", name)["status"]["pods"].get("traced", 0) >= traced,
                          "not all pods are traced")

    def condition(self, namespace, name, kind="KernelTracing", resource="trace"):
        """The condition `kind` of a Trace, or of another resource that has conditions."""
        conditions = get(namespace, resource, name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {"status": "", "reason": ""})

    def event_reasons(self, namespace, name):
        """The reasons of the Events of a Trace."""
        return [e["reason"] for e in get(namespace, "events.v1.events.k8s.io")["items"]
                if e["regarding"]["name"].startswith(name)]

    def end_by_time(self, namespace, name):
        """Ended by its duration, a Trace stays, with its counts; which are returned."""
        kubectl("-n", namespace, "patch", "trace", name, "--type=merge", "-p",
                '{"spec":{"duration":"1s"}}')
        self.wait_for(lambda: get(namespace, "trace", name)["status"]["phase"] == "Completed",
                      "the Trace does not end")
        return get(namespace, "trace", name)["status"]["events"]

    def said(self, namespace, name, *container):
        """The numbers of all lines "events N" that a program printed; of a pod with several containers: -c NAME."""
        def read():
            done = kubectl("-n", namespace, "logs", name, *container, check=False)
            return done if done.returncode == 0 else None
        logs = self.wait_for(read, f"there are no logs of {name}").stdout
        return [int(count) for count in re.findall(r"^events (\d+)$", logs, re.MULTILINE)]

    def emitted(self, namespace, name, *container):
        """Returns the last number that said() returns, or 0."""
        return (self.said(namespace, name, *container) or [0])[-1]

    def wait_for_tenant(self, namespace, *pod):
        """Waits until a tenant has said "events 0": an earlier signal is lost. Returns what it has emitted."""
        return self.wait_for(lambda: self.said(namespace, *pod), "the tenant does not start")[-1]

    def begin_round(self, namespace, *pod):
        """Lets a tenant emit one more round; returns what it had emitted before."""
        before = self.wait_for_tenant(namespace, *pod)
        kubectl("-n", namespace, "exec", *pod, "--", "kill", "-USR1", "1")
        return before

    def run_tenant(self, namespace, rounds=1, pod=("tenant",)):
        """Lets a tenant emit `rounds` more rounds; returns all events that it has emitted in its life. pod: its name,
        and of a pod with several containers -c NAME."""
        for _ in range(rounds):
            before = self.begin_round(namespace, *pod)
            self.wait_for(lambda before=before: self.emitted(namespace, *pod) > before,
                          "the tenant's round does not end")
        return self.emitted(namespace, *pod)
