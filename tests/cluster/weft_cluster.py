# SPDX-License-Identifier: Apache-2.0
"""What the tests on the cluster share: a cluster for a class of tests, namespaces, pods, waiting."""

import json
import os
import pathlib
import subprocess
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
IMAGES = TOP / "build/images"
# How long anything may take before it counts as hung; machines are slow, tests measure nothing.
PATIENCE = float(os.environ.get("WEFT_PATIENCE", "240"))
# "1": the cluster stays up after the tests, to be looked at.
KEEP = os.environ.get("WEFT_KEEP_CLUSTER") == "1"

PARTS = ("deployment/weft-controller", "deployment/weft-webhook", "statefulset/weft-relay",
         "daemonset/weft-agent")
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
# What the Pod Security level `restricted` asks of a container.
RESTRICTED_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"}}


def dev(*words, check=True, text=None):
    """Runs ./dev; the result has its output as text."""
    done = subprocess.run([str(TOP / "dev"), *map(str, words)], check=False, capture_output=True,
                          text=True, input=text, timeout=3600)
    return checked(done) if check else done


def checked(done):
    """Returns `done`, a command that has ended, if its status is 0."""
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, done.args))}: {done.returncode}\n"
                             f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


# What a busy API server or kubelet answers, or does not answer, to a client that is to try again.
BUSY = ("TLS handshake timeout", "etcdserver: ", "http2: client connection lost", "error dialing backend",
        "unexpected EOF", "the server is currently unable to handle the request")
CAN_REPEAT = ({"get"}, {"wait"}, {"logs"}, {"rollout", "status"}, {"apply"})


def kubectl(*words, **more):
    """Runs kubectl. What may be done twice is tried again where the cluster was too busy to answer."""
    for _ in range(3 if any(verbs <= set(words) for verbs in CAN_REPEAT) and "exec" not in words else 1):
        done = dev("cluster", "kubectl", *words, **{**more, "check": False})
        if done.returncode == 0 or not any(text in done.stderr for text in BUSY):
            break
        print(f"kubectl {' '.join(map(str, words))}: {done.stderr.strip()}", flush=True)
    return checked(done) if more.get("check", True) else done


def get(namespace, kind, *names, **more):
    return json.loads(kubectl("-n", namespace, "get", kind, *names, "-o", "json", **more).stdout)


def install_weft(*parts, values=""):
    """Installs the chart into the namespace weft, with a relay whose folder the machine sees. Waits for
    `parts`, or for all. `values`: further values, as helm's --set takes them."""
    # The webhook fails open: after its time, by default 2 s, a pod is made without the library.
    common = "relay.storage.persistent=false,image.pullPolicy=Never,webhook.timeoutSeconds=30"
    dev("cluster", "helm", "install", "weft", TOP / "charts/weft", "--namespace", "weft",
        "--create-namespace", "--set", ",".join(filter(None, [common, values])))
    for part in parts or PARTS:
        kubectl("-n", "weft", "rollout", "status", part, f"--timeout={PATIENCE:.0f}s")


def pod(name, image, *, labels=None, node=None, command=None, args=None, mounts=None, **spec):
    """A pod of one container that the level `restricted` admits. image: as deploy/images/images.py
    names it; mounts: path -> volume."""
    folder = "" if image.startswith("weft-") else "weft-test/"
    container = {"name": "main", "image": f"localhost/{folder}{image}:dev",
                 "imagePullPolicy": "Never", "securityContext": RESTRICTED_CONTAINER}
    if command:
        container["command"] = command
    if args:
        container["args"] = args
    volumes = [{"name": f"volume-{number}", **volume}
               for number, volume in enumerate((mounts or {}).values())]
    container["volumeMounts"] = [{"name": f"volume-{number}", "mountPath": path}
                                 for number, path in enumerate(mounts or {})]
    body = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1,
            "restartPolicy": "Never", **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": body}


def lacks_library(one):
    """Was a pod made without weft's library?"""
    return all(volume["name"] != "weft" for volume in one["spec"].get("volumes", []))


def client(name, **more):
    """A pod to do things from."""
    return pod(name, "shell", command=["sleep", "100000"], **more)


def web_server(name, **more):
    """A pod that answers by HTTP, and the Service before it, both of this name."""
    serve = f"echo {name} answers >/tmp/index.html && exec httpd -f -p 8080 -h /tmp"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
               "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}
    return service, pod(name, "shell", labels={"app": name}, command=["sh", "-c", serve],
                        mounts={"/tmp": {"emptyDir": {}}}, **more)


class ClusterTest(unittest.TestCase):
    """A class of tests with a cluster, which is ended after them, and must leave nothing."""

    NODES = 1
    LOADED = ("shell",)  # names of deploy/images/images.py

    @classmethod
    def setUpClass(cls):
        missing = [name for name in cls.LOADED if not (IMAGES / f"{name}.tar").exists()]
        if missing:
            raise AssertionError(f"there is no image {' '.join(missing)}: run ./dev images")
        cls.addClassCleanup(cls.end)
        dev("cluster", "up", "--nodes", cls.NODES)
        dev("cluster", "load", *(IMAGES / f"{name}.tar" for name in cls.LOADED))

    @classmethod
    def end(cls):
        if not KEEP:
            dev("cluster", "down")

    def namespace(self, name, labels=None):
        """A namespace that goes, some time, after the test; its name, for -n."""
        self.apply({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": labels or {}}})
        self.addCleanup(kubectl, "delete", "namespace", name, "--wait=false", "--ignore-not-found")
        self.wait_for(lambda: kubectl("-n", name, "get", "serviceaccount", "default",
                                      check=False).returncode == 0,
                      f"namespace {name} has no service account")
        return name

    def apply(self, *objects, namespace="default", check=True):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return kubectl("-n", namespace, "apply", "-f", "-", text=text, check=check)

    def wait_for(self, what, why):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if result := what():
                return result
            time.sleep(0.2)
        self.fail(why)

    def wait_for_pod(self, namespace, name, condition="condition=Ready"):
        done = kubectl("-n", namespace, "wait", f"pod/{name}", f"--for={condition}",
                       f"--timeout={PATIENCE:.0f}s", check=False)
        if done.returncode != 0:
            self.fail(done.stderr + kubectl("-n", namespace, "describe", f"pod/{name}").stdout)

    def wait_for_library(self, namespace, app):
        """Waits for a Deployment, whose pods have the label `app`. Deletes those that were made without the library,
        since the webhook fails open, until none was."""
        def missed():
            kubectl("-n", namespace, "rollout", "status", f"deployment/{app}", f"--timeout={PATIENCE:.0f}s")
            names = [one["metadata"]["name"] for one in get(namespace, "pods", "-l", f"app={app}")["items"]
                     if lacks_library(one)]
            if names:
                kubectl("-n", namespace, "delete", "pod", *names, "--ignore-not-found")
            return names

        self.wait_for(lambda: not missed(), f"pods of {app} get no library")

    def assert_answers(self, namespace, from_pod, host, server="web"):
        # By timeout, as Debian's busybox crashes in `wget -T`.
        self.wait_for(lambda: kubectl("-n", namespace, "exec", from_pod, "--", "timeout", "5", "wget",
                                      "-q", "-O-", f"http://{host}/",
                                      check=False).stdout == f"{server} answers\n",
                      f"{host} does not answer {from_pod}")

    def logs_of_ended(self, namespace, name):
        """What a pod that runs to its end printed; it must end well."""
        self.wait_for(lambda: self.phase(namespace, name) in ("Succeeded", "Failed"),
                      f"{name} does not end")
        logs = kubectl("-n", namespace, "logs", name).stdout
        self.assertEqual(self.phase(namespace, name), "Succeeded", logs)
        return logs

    def phase(self, namespace, name):
        return kubectl("-n", namespace, "get", "pod", name,
                       "--output=jsonpath={.status.phase}").stdout
