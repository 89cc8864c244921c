#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes side of weft on a real cluster: the chart, the webhook, the controller. Relay and agent
have no images here; what an agent says, the test says, with the agent's own token."""

import base64
import contextlib
import json
import tempfile
import time
import unittest

from tests.cluster.weft_cluster import PATIENCE, RESTRICTED, client, get, kubectl
from tests.cluster.with_weft import AS_CONTROLLER, INJECT, WeftTest, trace
from tests.cluster.wrong_traces import WRONG


def condition(kind):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now}


def session(name, node="node1"):
    relay = {"name": "r", "control": "r:1", "data": "r:2"}
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "TraceSession", "metadata": {"name": name},
            "spec": {"nodeName": node, "traceName": "x", "traceGeneration": 1,
                     "traceUid": "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10", "state": "Active",
                     "relay": relay, "record": {"user": {"events": [{"name": "a:*"}]}}}}


def config_map(name, labels=None, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}, **more}


def variables(pod):
    return {v["name"]: v.get("value") for v in pod["spec"]["containers"][0].get("env", [])}


class Control(WeftTest):
    LOADED = ("weft-controller", "weft-webhook", "shell")
    READY = ("deployment/weft-controller", "deployment/weft-webhook")
    VALUES = "traces.perNamespace=2"

    def wait_for_reason(self, namespace, name, reason, kind="Ready"):
        self.wait_for(lambda: self.condition(namespace, name, kind)["reason"] == reason,
                      f"{name} is not {reason}")

    def agent_config(self):
        """kubectl's flag to be the agent of this node: a token that is bound to its pod."""
        token = kubectl("-n", "weft", "create", "token", "weft-agent", "--bound-object-kind=Pod",
                        f"--bound-object-name={self.pods_of('agent')[0]}").stdout
        config = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
        config["users"][0]["user"] = {"token": token.strip()}
        file = tempfile.NamedTemporaryFile("w", suffix=".conf")
        self.addCleanup(file.close)
        json.dump(config, file)
        file.flush()
        return f"--kubeconfig={file.name}"

    def say(self, namespace, session, status, **more):
        return kubectl(self.agent_config(), "-n", namespace, "patch", "tracesession", session,
                       "--subresource=status", "--type=merge", "-p",
                       json.dumps({"status": status} | more.pop("other", {})), **more)

    def test_a_pod_gets_the_library_and_stays_what_it_was(self):
        name = self.injected_namespace("inject")
        plain = client("plain", labels={"app": "a"})
        taken = client("taken")
        taken["spec"]["containers"][0]["env"] = [{"name": "LD_PRELOAD", "value": "/other.so"}]
        refusing = client("refusing", labels={"weft.dev/inject": "disabled"})
        optional = client("optional")
        reference = {"name": "none", "key": "none", "optional": True}
        optional["spec"]["containers"][0]["env"] = [
            {"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": reference}}]
        self.apply(plain, taken, refusing, namespace=name)
        self.apply(optional, namespace=name, library=False)
        for pod in ("plain", "taken", "refusing", "optional"):
            self.wait_for_pod(name, pod)
        maps = kubectl("-n", name, "exec", "plain", "--", "cat", "/proc/self/maps").stdout
        self.assertIn("/libweft.so", maps)
        self.assertEqual(variables(get(name, "pod", "plain")),
                         {"LD_PRELOAD": "/weft/libweft.so", "WEFT_CONTAINER": "main"})
        self.assertEqual(get(name, "pod", "plain")["status"]["qosClass"], "BestEffort")
        self.assertEqual(variables(get(name, "pod", "taken"))["LD_PRELOAD"],
                         "/other.so:/weft/libweft.so")
        self.assertEqual(variables(get(name, "pod", "refusing")), {})
        self.assertEqual(variables(get(name, "pod", "optional")), {"LD_PRELOAD": None})
        self.wait_for(lambda: "OptionalPreload" in self.event_reasons(name, "optional"), "no Event")

    def test_pods_of_other_namespaces_stay_as_they_are(self):
        other = self.namespace("not-labelled", RESTRICTED)
        self.apply(client("plain"), namespace=other)
        self.assertEqual(variables(get(other, "pod", "plain")), {})
        own = client("own", labels=INJECT)
        self.apply(own, namespace="weft")
        self.assertEqual(variables(get("weft", "pod", "own")), {})

    def test_the_life_of_a_trace(self):
        name = self.injected_namespace("life")
        old = client("old", labels={"app": "shop", "weft.dev/inject": "disabled"})
        self.apply(client("new", labels={"app": "shop"}), old, namespace=name)
        self.wait_for_pod(name, "new")
        self.wait_for_pod(name, "old")
        self.apply(trace("t", "shop"), namespace=name)
        self.wait_for_reason(name, "t", "WaitingForNodes")
        session, = get(name, "tracesession", "--field-selector=spec.nodeName=node1")["items"]
        self.wait_for(lambda: get(name, "trace", "t")["status"]["pods"]["matched"] == 2, "it does not match both pods")
        made = get(name, "trace", "t")
        self.assertEqual(session["spec"]["traceUid"], made["metadata"]["uid"])
        self.assertEqual([s["reason"] for s in made["status"]["pods"]["skipped"]],
                         ["InjectionDisabled"])

        self.say(name, session["metadata"]["name"],
                 {"observedGeneration": 1, "phase": "Recording", "conditions": [condition("Ready")],
                  "pods": {"matched": 1, "traced": 1}, "events": {"recorded": 7, "delivered": 5}})
        kubectl("-n", name, "wait", "--for=condition=Ready", "trace/t", f"--timeout={PATIENCE:.0f}s")
        recording = get(name, "trace", "t")["status"]
        self.assertEqual((recording["phase"], recording["pods"]["traced"]), ("Recording", 1))
        self.assertEqual(recording["events"]["delivered"], 5)
        self.wait_for(lambda: "Recording" in self.event_reasons(name, "t"), "no Event")

        kubectl("-n", name, "delete", "trace", "t", "--wait=false")
        self.wait_for(lambda: get(name, "tracesession", session["metadata"]["name"])["spec"]["state"]
                      == "Draining", "no session is Draining")
        self.say(name, session["metadata"]["name"],
                 {"observedGeneration": 2, "phase": "Completed", "conditions": [condition("Drained")]})
        self.wait_for(lambda: not get(name, "trace")["items"], "the Trace does not go")
        self.wait_for(lambda: not get(name, "tracesession")["items"], "its session does not go")
        self.assertNotIn("NotDrained", self.event_reasons(name, "t"))

    def test_a_deleted_trace_waits_for_no_silent_node_for_ever(self):
        name = self.injected_namespace("silent")
        self.apply(client("p", labels={"app": "shop"}), namespace=name)
        self.wait_for_pod(name, "p")
        self.apply(trace("t", "shop"), namespace=name)
        self.wait_for_reason(name, "t", "WaitingForNodes")
        self.wait_for(lambda: "node1 (no weft-agent of this node answers" in
                      self.condition(name, "t", "Ready").get("message", ""), "the node without an agent is not named")
        kubectl("-n", name, "delete", "trace", "t", f"--timeout={PATIENCE:.0f}s")
        self.assertIn("NotDrained", self.event_reasons(name, "t"))

    def test_duration_ends_a_trace(self):
        name = self.injected_namespace("duration")
        self.apply(client("p", labels={"app": "shop"}), namespace=name)
        self.wait_for_pod(name, "p")
        self.apply(trace("t", "shop", duration="3s"), namespace=name)
        self.wait_for_reason(name, "t", "WaitingForNodes")
        session, = get(name, "tracesession")["items"]
        self.say(name, session["metadata"]["name"],
                 {"observedGeneration": 1, "phase": "Recording", "conditions": [condition("Ready")]})
        self.wait_for(lambda: get(name, "tracesession")["items"][0]["spec"]["state"] == "Draining",
                      "it does not end")
        self.assertTrue(get(name, "tracesession")["items"][0]["spec"]["deadline"])
        self.say(name, session["metadata"]["name"],
                 {"observedGeneration": 3, "phase": "Completed", "conditions": [condition("Drained")]})
        self.wait_for_reason(name, "t", "Completed")

    def test_bad_input(self):
        name = self.injected_namespace("bad")
        wrong = trace("wrong", "shop", user={"events": [{"nmae": "a:b"}]})
        refused = self.apply(wrong, namespace=name, check=False).stderr
        self.assertRegex(refused, r"spec\.user\.events\[0\].*nmae")
        self.apply(trace("unmatched", "unmatched"), namespace=name)
        self.wait_for_reason(name, "unmatched", "NoPods")
        self.assertEqual(self.condition(name, "unmatched", "Ready")["message"],
                         "spec.pods matches no pod of the namespace")
        self.assertEqual(get(name, "trace", "unmatched")["status"]["phase"], "Pending")
        self.assertEqual(get(name, "tracesession")["items"], [])

    def refusal(self, namespace, spec, *flags, kind="Trace"):
        """What kubectl says when a Trace named `wrong` is applied."""
        wrong = {"apiVersion": "weft.dev/v1alpha1", "kind": kind, "metadata": {"name": "wrong"}, "spec": spec}
        return kubectl("-n", namespace, "apply", *flags, "-f", "-", text=json.dumps(wrong), check=False).stderr

    @contextlib.contextmanager
    def without_the_webhook_for_traces(self):
        """The API server does not ask it meanwhile."""
        config = ("mutatingwebhookconfiguration", "weft-webhook")
        hooks = get("weft", *config)["webhooks"]
        place, = (place for place, hook in enumerate(hooks) if hook["name"] == "trace.check.weft.dev")

        def change(*operations):
            self.wait_for(lambda: kubectl("patch", *config, "--type=json", "-p", json.dumps(operations),
                                          check=False).returncode == 0, "the configuration does not change")

        path = f"/webhooks/{place}"
        change({"op": "test", "path": path + "/name", "value": hooks[place]["name"]}, {"op": "remove", "path": path})
        try:
            yield
        finally:
            change({"op": "add", "path": "/webhooks/-", "value": hooks[place]})

    def test_wrong_traces_are_refused_in_wefts_words(self):
        name = self.namespace("words")
        several = {"user": {"events": [{}]}, "paused": "yes", "filter": "a >"}
        words = ('The Trace "wrong" is invalid: \n'
                 "* spec.filter: column 4: expected an operand, not the end\n"
                 '* spec.paused: must be true or false, not "yes"\n'
                 "* spec.user.events[0].name: missing, but required\n")
        self.wait_for(lambda: self.refusal(name, several, "--dry-run=server") == words, "the webhook is not asked")
        self.assertEqual(self.refusal(name, several), words)
        self.assertEqual(self.refusal(name, {"paused": 1}, kind="ClusterTrace"),
                         'The ClusterTrace "wrong" is invalid: spec.paused: must be true or false, not a number\n')
        for spec, messages in WRONG:
            with self.subTest(spec=spec):
                said = self.refusal(name, spec)
                self.assertNotIn("<nil>", said)
                told = [f"{field}: {better[0] if better else message}" for field, message, *better in messages if field]
                before = "\n* " if len(told) > 1 else ""
                self.assertIn(f"is invalid: {before}{before.join(told)}\n" if told else messages[0][1], said)

    def test_a_trace_that_only_the_webhook_refuses_can_be_changed_and_deleted(self):
        """An older version may have stored it."""
        name = self.namespace("stored")
        filtered = trace("filtered", "shop", filter="a >")
        with self.without_the_webhook_for_traces():
            self.wait_for(lambda: self.apply(filtered, namespace=name, check=False).returncode == 0, "it is refused")
            self.assertIn("must be of type boolean", self.refusal(name, {"paused": "yes"}))
        self.wait_for_reason(name, "filtered", "InvalidSpec", "Accepted")
        self.assertIn("spec.filter", self.condition(name, "filtered", "Accepted")["message"])
        self.wait_for(lambda: "must be true or false" in self.refusal(name, {"paused": "yes"}),
                      "the webhook is not asked again")
        change = ("-n", name, "patch", "trace", "filtered", "--type=merge", "-p")
        self.assertIn("spec.filter: column", kubectl(*change, '{"spec": {"paused": true}}', check=False).stderr)
        kubectl(*change, '{"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/wait"]}}')
        kubectl("-n", name, "delete", "trace", "filtered", "--wait=false")
        kubectl(*change, '{"spec": {"paused": true}, "metadata": {"finalizers": null}}')
        self.assertEqual(get(name, "trace")["items"], [])

    def test_traces_beyond_the_limit_of_a_namespace(self):
        """The webhook refuses another one. What was made without it is recorded in its turn."""
        name = self.namespace("crowded")
        self.apply(trace("first", "none"), trace("second", "none"), namespace=name)
        why = "the namespace has as many Traces as it may have, 2, also counting those that are over"
        many = trace("many", "none")
        made = get(name, "trace", "second")["metadata"]["creationTimestamp"]
        self.wait_for(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > made, "the clock stands still")
        self.wait_for(lambda: why in self.refusal(name, many["spec"], "--dry-run=server"), "it is not refused")
        with self.without_the_webhook_for_traces():
            self.wait_for(lambda: self.apply(many, namespace=name, check=False).returncode == 0, "it is refused")
        self.wait_for_reason(name, "many", "TooManyTraces", "Accepted")
        self.assertIn(why, self.condition(name, "many", "Accepted")["message"])
        kubectl("-n", name, "delete", "trace", "first", f"--timeout={PATIENCE:.0f}s")
        self.wait_for_reason(name, "many", "Valid", "Accepted")

    def test_another_controller_takes_over(self):
        name = self.injected_namespace("lead")
        first = self.wait_for(self.leader, "no controller leads")
        kubectl("-n", "weft", "delete", "pod", first, "--wait=false")
        self.wait_for(lambda: self.leader() not in ("", first), "no other controller leads")
        self.apply(trace("t", "unmatched"), namespace=name)
        self.wait_for_reason(name, "t", "NoPods")

    def leader(self):
        return get("weft", "lease", "weft-controller")["spec"]["holderIdentity"]

    def test_a_trace_of_pods_without_the_library_reports_that(self):
        name = self.injected_namespace("without")
        misspelt = trace("misspelt", "shop")
        misspelt["spec"]["pods"]["containers"] = ["mian"]
        self.apply(client("old", labels={"app": "shop", "weft.dev/inject": "disabled"}),
                   trace("t", "shop"), misspelt, namespace=name)
        self.wait_for_reason(name, "t", "NothingTraced")
        self.wait_for(lambda: "NothingTraced" in self.event_reasons(name, "t"), "no Event")
        self.wait_for_reason(name, "misspelt", "NothingTraced")
        skipped, = get(name, "trace", "misspelt")["status"]["pods"]["skipped"]
        self.assertEqual((skipped["reason"], skipped["names"]), ("NoSuchContainer", ["old"]))
        self.assertRegex(skipped["message"], "they have: main$")

    def test_an_agent_writes_its_own_nodes_status_only(self):
        name = self.injected_namespace("policy")
        self.create(session("foreign", "other"), session("own"), namespace=name, user=AS_CONTROLLER)
        status = {"phase": "Recording"}
        self.say(name, "own", status)
        for other in ({}, {"spec": {"nodeName": "node1"}}):
            refused = self.say(name, "foreign", status, other=other, check=False)
            self.assertIn("own node's sessions only", refused.stderr)
        refused = kubectl("-n", name, "patch", "tracesession", "own", "--type=merge", "-p",
                          '{"spec":{"nodeName":"other"}}', check=False)
        self.assertIn("cannot be changed", refused.stderr)

    def tenant(self, namespace):
        """kubectl's flag to be a user who may do everything in the namespace with ConfigMaps and sessions."""
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tenant"},
                "rules": [{"apiGroups": ["", "weft.dev"], "resources": ["configmaps", "tracesessions"],
                           "verbs": ["*"]}]}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                   "metadata": {"name": "tenant"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
                   "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tenant"}]}
        self.apply(role, binding, namespace=namespace)
        self.wait_for_right(namespace, "--as=tenant", "create", "configmaps")
        return "--as=tenant"

    def delete_held(self, namespace, user, kind, name):
        """Deletes an object that a finalizer holds, which is removed then, as the garbage collector does."""
        for finalizers in (["example.com/held"], None):
            kubectl("-n", namespace, user, "patch", kind, name, "--type=merge", "-p",
                    json.dumps({"metadata": {"finalizers": finalizers}}))
            if finalizers:
                kubectl("-n", namespace, user, "delete", kind, name, "--wait=false")

    def library(self, namespace):
        found = get(namespace, "configmap", "-l", "weft.dev/library=current")["items"]
        return found[0] if found else None

    def test_only_the_controller_writes_the_library(self):
        name = self.injected_namespace("library")
        user = self.tenant(name)
        library = self.library(name)["metadata"]["name"]
        elf = {"libweft.so.amd64": base64.b64encode(b"\177ELFevil").decode()}
        for wrong in (config_map("weft-lib-0123456789abcdef", binaryData=elf, immutable=True),
                      config_map("mine", {"weft.dev/library": "current"}, binaryData=elf),
                      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "weft-lib-"}}):
            refused = self.create(wrong, namespace=name, user=user, check=False).stderr
            self.assertIn("only weft's controller writes ConfigMaps", refused)
        self.create(config_map("other", data={"a": "b"}), namespace=name, user=user)
        for target, label in (("other", "current"), (library, "old"), (library, None)):
            refused = kubectl("-n", name, user, "patch", "configmap", target, "--type=merge", "-p",
                              json.dumps({"metadata": {"labels": {"weft.dev/library": label}}}),
                              check=False).stderr
            self.assertIn("only weft's controller writes ConfigMaps", refused)
        kubectl("-n", name, user, "annotate", "configmap", library, "team=shop")
        before = self.library(name)["metadata"]["uid"]
        self.delete_held(name, user, "configmap", library)
        self.wait_for(lambda: (made := self.library(name)) and made["metadata"]["uid"] != before,
                      "the library does not come back")
        refused = kubectl("-n", name, AS_CONTROLLER, "delete", "configmap", "other", check=False).stderr
        self.assertIn("may write ConfigMaps named weft-lib-* only", refused)
        kubectl("delete", "namespace", name, f"--timeout={PATIENCE:.0f}s")

    def test_a_library_made_by_others_reaches_no_pod(self):
        genuine = self.library(self.injected_namespace("genuine"))
        name = self.namespace("prepared", RESTRICTED)
        # As if they had been made before weft was installed, when no policy refused them.
        evil = {key: base64.b64encode(b"\177ELFevil").decode() for key in genuine["binaryData"]}
        same_name = genuine["metadata"]["name"]
        labels = {"weft.dev/library": "current"}
        self.create(*(config_map(other, labels, binaryData=evil, immutable=True)
                      for other in (same_name, "weft-lib-ffffffffffffffff")),
                    namespace=name, user=AS_CONTROLLER)
        evil_uid = get(name, "configmap", same_name)["metadata"]["uid"]
        self.apply(client("early", labels=INJECT), namespace=name)
        self.wait_for_pod(name, "early")
        self.assertEqual(variables(get(name, "pod", "early")), {})

        def content():
            # It is deleted, and then made anew.
            found = get(name, "configmap", f"--field-selector=metadata.name={same_name}")["items"]
            return found[0]["binaryData"] if found else None
        self.wait_for(lambda: content() == genuine["binaryData"], "the other content is not replaced")
        made = get(name, "configmap", same_name)
        self.assertNotEqual(made["metadata"]["uid"], evil_uid)
        self.wait_for(lambda: "LibraryReplaced" in self.event_reasons(name, same_name), "no Event")
        self.wait_for(lambda: get(name, "configmap", "weft-lib-ffffffffffffffff")["metadata"]["labels"] ==
                      {"weft.dev/library": "old"}, "the other one stays current")

        def injected():
            kubectl("-n", name, "delete", "pod", "late", "--ignore-not-found")
            self.apply(client("late", labels=INJECT), namespace=name)
            return "LD_PRELOAD" in variables(get(name, "pod", "late"))
        self.wait_for(injected, "no pod gets the library")
        self.wait_for_pod(name, "late")
        maps = kubectl("-n", name, "exec", "late", "--", "cat", "/proc/self/maps").stdout
        self.assertIn("/libweft.so", maps)

    def test_only_the_controller_writes_sessions(self):
        name = self.injected_namespace("sessions")
        user = self.tenant(name)
        refused = self.create(session("mine"), namespace=name, user=user, check=False).stderr
        self.assertIn("only weft's controller writes TraceSessions", refused)
        self.create(session("given"), namespace=name, user=AS_CONTROLLER)
        refused = kubectl("-n", name, user, "patch", "tracesession", "given", "--type=merge", "-p",
                          '{"spec":{"relay":{"control":"evil.example:1","data":"evil.example:2"}}}',
                          check=False).stderr
        self.assertIn("only weft's controller writes TraceSessions", refused)
        self.assertEqual(get(name, "tracesession", "given")["spec"]["relay"]["control"], "r:1")
        kubectl("-n", name, user, "label", "tracesession", "given", "team=shop")
        self.delete_held(name, user, "tracesession", "given")
        self.wait_for(lambda: not get(name, "tracesession")["items"], "it stays")

    def test_with_weft_away_pods_start_and_run_on(self):
        name = self.injected_namespace("away")
        self.apply(client("before"), namespace=name)
        self.wait_for_pod(name, "before")
        kubectl("-n", "weft", "scale", "deployment/weft-webhook", "--replicas=0")
        self.addCleanup(kubectl, "-n", "weft", "rollout", "status", "deployment/weft-webhook")
        self.addCleanup(kubectl, "-n", "weft", "scale", "deployment/weft-webhook", "--replicas=2")
        self.wait_for(lambda: not self.pods_of("webhook"), "the webhook does not end")
        self.apply(client("without"), namespace=name, library=False)
        self.wait_for_pod(name, "without")
        self.assertEqual(variables(get(name, "pod", "without")), {})
        kubectl("-n", name, "delete", "configmap", "-l", "weft.dev/library")
        kubectl("-n", name, "exec", "before", "--", "true")


if __name__ == "__main__":
    unittest.main()
