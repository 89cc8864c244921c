#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cluster itself: that it is a Kubernetes as users have it, as far as weft leans on it."""

import base64
import hashlib
import json
import unittest

from tests.cluster.weft_cluster import ClusterTest, PATIENCE, RESTRICTED, TOP, client, dev, kubectl, pod, web_server
from tests.cluster.wrong_traces import WRONG

CRDS = TOP / "charts/weft/definitions"
TRACE = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata:
  name: orders
spec:
  user:
    {events}:
      - name: 'shop:*'
"""


# Image -> its programs.
OURS = {"weft-agent": ["weft-keeper", "weft-node-agent"], "weft-controller": ["weft-controller"],
        "weft-webhook": ["weft-webhook"], "weft-relay": ["weft-relay"]}


class Cluster(ClusterTest):
    LOADED = ("shell", "shop", "tenant", *OURS)

    def test_up_again_changes_nothing(self):
        self.assertIn("it is up", dev("cluster", "up").stdout)

    def test_programs_run_in_a_restricted_namespace(self):
        name = self.namespace("restricted", RESTRICTED)
        self.apply(pod("shop", "shop", args=["--orders", "100"]), pod("tenant", "tenant"),
                   namespace=name)
        lines = self.logs_of_ended(name, "shop").splitlines()
        self.assertIn("shop:order_placed 100", lines)
        # A signal that came before would be lost.
        self.wait_for(lambda: "events 0\n" in kubectl("-n", name, "logs", "tenant", check=False).stdout,
                      "the tenant does not start")
        for total in (2001, 4002):
            kubectl("-n", name, "exec", "tenant", "--", "kill", "-USR1", "1")
            self.wait_for(lambda: f"events {total}\n" in kubectl("-n", name, "logs", "tenant").stdout,
                          f"the tenant does not emit {total} events")

    def test_our_programs_start(self):
        """Each finds its libraries in its image."""
        name = self.namespace("programs", RESTRICTED)
        for image, programs in OURS.items():
            for program in programs:
                self.apply(pod(program, image, command=[f"/usr/bin/{program}", "--help"]),
                           namespace=name)
        for programs in OURS.values():
            for program in programs:
                self.assertIn("--help", self.logs_of_ended(name, program))

    def test_restricted_namespace_refuses_the_privileged(self):
        name = self.namespace("refusing", RESTRICTED)
        privileged = pod("privileged", "shell")
        privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        done = self.apply(privileged, namespace=name, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('violates PodSecurity "restricted', done.stderr)

    def test_services_have_names(self):
        name = self.namespace("names")
        self.apply(*web_server("web"), client("client"), namespace=name)
        self.wait_for_pod(name, "web")
        self.wait_for_pod(name, "client")
        for host in ("web", f"web.{name}.svc.cluster.local"):
            self.assert_answers(name, "client", host)

        def unknown():
            done = kubectl("-n", name, "exec", "client", "--", "nslookup", "example.com", check=False)
            return done.stdout + done.stderr
        self.wait_for(lambda: "NXDOMAIN" in unknown(), "a name that there is not is found")

    def test_large_immutable_configmap_is_a_readable_file(self):
        """Such a ConfigMap carries libweft.so into pods."""
        name = self.namespace("files", RESTRICTED)
        data = hashlib.shake_256(b"library").digest(600_000)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "library"},
                  "immutable": True,
                  "binaryData": {"libweft.so": base64.b64encode(data).decode()}}
        # `apply` would write it into an annotation a second time, which is too much for one object.
        kubectl("-n", name, "create", "-f", "-", text=json.dumps(config))
        self.apply(pod("reader", "shell", command=["sha256sum", "/weft/libweft.so"],
                       mounts={"/weft": {"configMap": {"name": "library"}}}), namespace=name)
        self.assertEqual(self.logs_of_ended(name, "reader").split()[0],
                         hashlib.sha256(data).hexdigest())

    def test_claim_gets_a_world_writable_volume(self):
        """The relay needs such a volume, since it does not run as root."""
        name = self.namespace("volumes", RESTRICTED)
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                 "spec": {"accessModes": ["ReadWriteOnce"],
                          "resources": {"requests": {"storage": "10Gi"}}}}
        volume = {"/data": {"persistentVolumeClaim": {"claimName": "data"}}}
        for pod_name, command in (("writer", "echo kept >/data/file"), ("reader", "cat /data/file")):
            self.apply(claim, pod(pod_name, "shell", command=["sh", "-c", command], mounts=volume,
                                  securityContext={"fsGroup": 65532}), namespace=name)
            said = self.logs_of_ended(name, pod_name)
        self.assertEqual(said, "kept\n")

    def test_wrong_traces_are_refused_in_words(self):
        kubectl("apply", "-f", CRDS)
        kubectl("wait", "--for=condition=Established", "crd/traces.weft.dev",
                f"--timeout={PATIENCE:.0f}s")
        name = self.namespace("traces")

        def apply(text):
            return kubectl("-n", name, "apply", "-f", "-", text=text, check=False)

        # Until the API server serves the new kind.
        self.wait_for(lambda: apply(TRACE.format(events="events")).returncode == 0,
                      "a right Trace is refused")
        # Until kubectl knows that the server checks the new kind, it checks by itself, in other words.
        of_wrong_type = TRACE.format(events="events") + "  paused: 'yes'\n"
        self.wait_for(lambda: "must be of type boolean" in apply(of_wrong_type).stderr,
                      "kubectl does not leave the check to the server")
        wrong = apply(TRACE.format(events="evnts"))
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn('unknown field "spec.user.evnts"', wrong.stderr)
        self.assertEqual(kubectl("-n", name, "get", "traces", "--output=name").stdout,
                         "trace.weft.dev/orders\n")
        for spec, messages in WRONG:
            with self.subTest(spec=spec):
                # Not in a list, which kubectl checks by itself, in other words.
                done = apply(json.dumps({"apiVersion": "weft.dev/v1alpha1", "kind": "Trace",
                                         "metadata": {"name": "wrong"}, "spec": spec}))
                self.assertNotEqual(done.returncode, 0)
                # A regular expression is no help.
                self.assertNotIn("should match", done.stderr)
                for field, message, *_ in messages:
                    self.assertIn(f"{field}: " if field else "", done.stderr)
                    self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
