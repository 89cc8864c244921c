#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""charts/weft as users install it, with its defaults: what it starts becomes ready, proves that it records, is
upgraded, and goes again, and holds nothing that stays. README.md's way from an empty cluster to the first
event, and the examples. And each of its values is heeded."""

import json
import re
import subprocess
import textwrap
import unittest

from scripts.chart_readme import rows
from tests.cluster import programs
from tests.cluster.weft_cluster import ClusterTest, PARTS, PATIENCE, TOP, client, dev, get, kubectl
from tests.cluster.with_weft import INJECT, trace

CHART = TOP / "charts/weft"
SYSTEM = "weft-system"
KINDS = ("traces", "clustertraces", "tracesessions", "traceviews")
# Other values than the defaults, by the last part of their names. Switches and numbers are changed by themselves.
OTHERS = {"registry": "other.example", "tag": "other", "pullPolicy": "Always", "pullSecrets": [{"name": "other"}],
          "amd64": "/other", "nodeSelector": {"other": "yes"}, "affinity": {"podAffinity": {}},
          "tolerations": [{"key": "other"}], "priorityClassName": "other", "requests": {"cpu": "7m"},
          "limits": {"memory": "7Gi"}, "namespaceSelector": [{"key": "other", "operator": "Exists"}],
          "className": "other", "namespaceQuota": "7Gi", "traceQuota": "7Gi", "kubeletFolder": "/other",
          "stateFolder": "/other", "mode": "auto", "modulesFolder": "/other", "urls": ["http://other.example"],
          "proxy": "http://other.example"}
# Values that need another one: its name.
NEEDED = {"agent.kernel.modulesFolder": "agent.kernel.mode", "agent.kernel.buildOnNode": "agent.kernel.mode",
          "agent.debuginfod.proxy": "agent.debuginfod.urls"}


def helm(*words, **more):
    return dev("cluster", "helm", *words, "--namespace", SYSTEM, **more)


def another(name, default):
    """Another value than the default, which is YAML on one line, in a file of values."""
    key = name.rpartition(".")[2]
    if key in OTHERS:
        return OTHERS[key]
    if default in ("true", "false"):
        return default == "false"
    number, unit = re.fullmatch(r"(\d+)(\w*)", default).groups()
    return f"{int(number) + 1}{unit}" if unit else int(number) + 1


class Values(unittest.TestCase):
    def render(self, **values):
        flags = [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
        done = subprocess.run([programs.build() / "helm", "template", "weft", CHART, *flags], check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_value_changes_what_is_rendered(self):
        found = [(name, default) for name, default, _ in rows((CHART / "values.yaml").read_text()) if default]
        self.assertGreater(len(found), 50)
        rendered = {"": self.render()}
        for name, default in found:
            with self.subTest(value=name):
                needed = NEEDED.get(name, "")
                values = {needed: OTHERS[needed.rpartition(".")[2]]} if needed else {}
                if needed not in rendered:
                    rendered[needed] = self.render(**values)
                self.assertNotEqual(self.render(**values, **{name: another(name, default)}), rendered[needed])


class Chart(ClusterTest):
    LOADED = ("shell", "shop", "weft-agent", "weft-controller", "weft-webhook", "weft-relay")

    def test_install_upgrade_and_uninstall(self):
        self.assert_keeps_namespaces_of_others()
        helm("install", "weft", CHART, "--create-namespace")
        self.assert_ready()
        self.assertIn("weft_", kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/"
                                       "weft-relay-0:8080/proxy/metrics").stdout)
        self.assert_proves_itself()
        self.assert_older_definition_is_told()
        self.assert_deleted_definition_is_told()
        # The values of a chart that had none of these.
        helm("upgrade", "weft", CHART, "--reuse-values", "--set",
             "crds=null,metrics=null,agent.kernel=null,relay.storage=null,webhook.port=null,controller=null")
        self.assert_ready()
        # As docs/operations.md has it.
        helm("upgrade", "weft", CHART, "--reset-then-reuse-values")
        self.assert_ready()
        # The definition is there again, and the controller looks after its Traces.
        self.apply(trace("again", "none"))
        kubectl("wait", "--for=condition=Accepted", "trace/again", f"--timeout={PATIENCE:.0f}s")
        kubectl("delete", "trace", "again", f"--timeout={PATIENCE:.0f}s")
        helm("uninstall", "weft", "--wait", f"--timeout={PATIENCE:.0f}s")
        # Helm waits for what it made; pods, which others made for it, end some time after.
        self.wait_for(lambda: not kubectl("-n", SYSTEM, "get", "all", "--output=name").stdout,
                      "something of weft stays")
        # What people made stays: definitions, and with them their Traces.
        self.assertIn("traces.weft.dev", kubectl("get", "crds", "--output=name").stdout)
        self.assert_forced_removal()

    def assert_ready(self):
        for workload in PARTS:
            done = kubectl("-n", SYSTEM, "rollout", "status", workload,
                           f"--timeout={PATIENCE:.0f}s", check=False)
            if done.returncode != 0:
                self.fail(done.stderr + kubectl("-n", SYSTEM, "describe", "pods").stdout)

    def assert_proves_itself(self):
        """`helm test`: it succeeds, and leaves nothing; without a relay it fails, and leaves a log that says so."""
        name = f"{SYSTEM}-install-test"
        tested = helm("test", "weft", check=False)
        if tested.returncode != 0:
            self.fail(tested.stderr + kubectl("-n", name, "logs", "job/install-test", check=False).stdout +
                      kubectl("-n", name, "describe", "traces,pods", check=False).stdout)
        self.assertIn("Phase:          Succeeded", tested.stdout)
        self.assertNotIn(name, kubectl("get", "namespaces", "--output=name").stdout)
        kubectl("-n", SYSTEM, "scale", "statefulset/weft-relay", "--replicas=0")
        self.wait_for(lambda: not get(SYSTEM, "pods", "-l", "app.kubernetes.io/component=relay")["items"],
                      "the relay does not go")
        self.assertNotEqual(helm("test", "weft", "--timeout=30s", check=False).returncode, 0)
        # A pod that is starting has no log yet.
        self.wait_for(lambda: "the relay does not answer" in
                      kubectl("-n", name, "logs", "-l", "app.kubernetes.io/component=test", check=False).stdout,
                      "the log does not name the relay")
        kubectl("-n", SYSTEM, "scale", "statefulset/weft-relay", "--replicas=1")
        self.assert_ready()
        kubectl("delete", "namespace", name, f"--timeout={PATIENCE:.0f}s")

    def assert_keeps_namespaces_of_others(self):
        """`helm test` would replace a namespace of that name."""
        name = f"{SYSTEM}-install-test"
        kubectl("create", "namespace", name)
        refused = helm("install", "weft", CHART, "--create-namespace", check=False)
        self.assertIn(f"there is a namespace {name} that is not weft's", refused.stderr)
        kubectl("delete", "namespace", name, f"--timeout={PATIENCE:.0f}s")

    def assert_older_definition_is_told(self):
        """One that lacks a field; the upgrade writes it anew. A Trace that records can be deleted meanwhile."""
        name = self.namespace("earlier", INJECT)
        self.apply(client("held", labels={"app": "held"}), trace("held", "held"), namespace=name)
        self.wait_for(lambda: get(name, "trace", "held")["metadata"].get("finalizers"), "the Trace has no session")
        path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/duration"
        kubectl("patch", "crd", "traces.weft.dev", "--type=json", "-p",
                f'[{{"op": "remove", "path": "{path}"}}]')
        self.wait_for(lambda: "it has no field spec.duration" in
                      kubectl("-n", SYSTEM, "logs", "deployment/weft-controller").stdout,
                      "the controller does not notice the older definition")
        self.wait_for(lambda: get(SYSTEM, "deployment", "weft-controller")["status"].get("readyReplicas", 0) == 0,
                      "the controller stays ready")
        kubectl("-n", name, "delete", "trace", "held", f"--timeout={PATIENCE:.0f}s")

    def assert_deleted_definition_is_told(self):
        """Deletes the definition of Traces, and with it all Traces, while the controller runs. The upgrade makes it
        again."""
        kubectl("delete", "crd", "traces.weft.dev", f"--timeout={PATIENCE:.0f}s")
        self.wait_for(lambda: "there is no definition traces.weft.dev" in
                      kubectl("-n", SYSTEM, "logs", "deployment/weft-controller", check=False).stdout,
                      "the controller does not notice that the definition is gone")

    def paste(self, script):
        """Runs lines of a page, with the cluster's kubectl and helm; returns what they print."""
        # The timeouts of the pages are for a machine that is not busy.
        script = re.sub(r"--timeout=\d+s", f"--timeout={PATIENCE:.0f}s", script)
        tools = "".join(f'{tool}() {{ "{TOP}/dev" cluster {tool} "$@"; }}\n' for tool in ("kubectl", "helm"))
        return subprocess.run(["bash", "-e", "-c", tools + textwrap.dedent(script)], cwd=TOP, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def test_a_way_from_nothing_to_the_first_event(self):
        page = (TOP / "README.md").read_text(encoding="utf-8")
        *steps, view = re.search(r"    helm install weft .*?\n\n", page, re.DOTALL)[0].strip().splitlines()
        folder = steps.pop()
        made = next(i for i, step in enumerate(steps) if "rollout status" in step)
        self.paste("\n".join(steps[:made]))
        self.wait_for_library("shop", "shop")
        self.paste("\n".join(steps[made:]))
        # A person is slower than the first packet.
        seen = self.wait_for(lambda: "shop:" in (text := self.paste(folder + "\n" + view)) and text,
                             "no event is shown")
        self.assertEqual(len(seen.splitlines()), 10, seen)
        self.assert_examples_show_events()
        kubectl("delete", "namespace", "shop", "billing", f"--timeout={PATIENCE:.0f}s")
        dev("cluster", "helm", "uninstall", "weft", "--namespace", "weft", "--wait")
        kubectl("delete", "namespace", "weft", f"--timeout={PATIENCE:.0f}s")
        # They belong to that release.
        kubectl("delete", "crd", *(f"{kind}.weft.dev" for kind in KINDS), f"--timeout={PATIENCE:.0f}s")

    def assert_examples_show_events(self):
        """Each one is applied beside the shop; those of the kernel are only accepted, since weft.ko is off."""
        self.paste("""
            kubectl create namespace billing
            kubectl label namespace billing weft.dev/inject=enabled
            kubectl -n billing wait --for=create configmap -l weft.dev/library=current --timeout=60s
            kubectl -n billing apply -f deploy/examples/shop.yaml
            """)
        self.wait_for_library("billing", "shop")
        made = []
        for file in sorted((TOP / "deploy/examples/traces").iterdir()):
            given = [] if "namespace:" in file.read_text(encoding="utf-8") else ["-n", "shop"]
            applied = json.loads(kubectl(*given, "apply", "-f", file, "-o", "json").stdout)
            made += applied.get("items", [applied])
        kubectl("apply", "-f", TOP / "deploy/examples/clustertraces/slow-disk.yaml")
        self.assertGreaterEqual(len(made), 8)
        for one in made:
            place = ["-n", one["metadata"]["namespace"]]
            name = f"trace/{one['metadata']['name']}"
            if "kernel" in one["spec"]:
                kubectl(*place, "wait", "--for=condition=Accepted", name, f"--timeout={PATIENCE:.0f}s")
                continue
            kubectl(*place, "patch", name, "--type=merge", "-p", '{"spec":{"paused":false}}')
            kubectl(*place, "wait", "--for=condition=Ready", name, f"--timeout={PATIENCE:.0f}s")
        kubectl("wait", "--for=condition=Accepted", "clustertrace/slow-disk", f"--timeout={PATIENCE:.0f}s")
        kubectl("delete", "clustertrace", "slow-disk")
        for one in made:
            if "kernel" not in one["spec"]:
                self.assert_has_events(one["metadata"]["namespace"], one["metadata"]["name"])

    def assert_has_events(self, namespace, name):
        kubectl("-n", namespace, "patch", "trace", name, "--type=merge", "-p", '{"spec":{"duration":"5s"}}')
        self.wait_for(lambda: get(namespace, "trace", name)["status"]["phase"] == "Completed",
                      f"{namespace}/{name} does not end")
        status = get(namespace, "trace", name)["status"]
        self.assertGreater(status["events"]["delivered"], 0, (name, status))

    def assert_forced_removal(self):
        """Without the hook a Trace keeps its finalizer; docs/operations.md says how it gives it up."""
        helm("install", "weft", CHART)
        self.assert_ready()
        name = self.namespace("held", INJECT)
        self.apply(client("held", labels={"app": "held"}), trace("held", "held"), namespace=name)
        self.wait_for(lambda: get(name, "trace", "held")["metadata"].get("finalizers"),
                      "the Trace has no session")
        helm("uninstall", "weft", "--no-hooks", "--wait", f"--timeout={PATIENCE:.0f}s")
        page = (TOP / "docs/operations.md").read_text()
        command = textwrap.dedent(re.search(r"    for kind in traces .*?\n    done\n", page, re.DOTALL)[0])
        subprocess.run(["bash", "-c", f'kubectl() {{ "{TOP}/dev" cluster kubectl "$@"; }}; {command}'],
                       check=True)
        kubectl("delete", "namespace", name, f"--timeout={PATIENCE:.0f}s")

    def test_needs_no_cluster_to_be_rendered(self):
        rendered = helm("template", "weft", CHART, "--kube-version", "1.20.0").stdout
        self.assertIn("kind: DaemonSet", rendered)
        more = helm("template", "weft", CHART, "--set", "webhook.replicas=2,metrics.podMonitor=true,"
                    "metrics.rules=true,metrics.dashboard=true,"
                    "webhook.hostNetwork=true,networkPolicies=false,crds.install=false").stdout
        self.assertNotIn("CustomResourceDefinition", more)
        self.assertNotIn("NetworkPolicy", more)
        for kind in ("PodMonitor", "PodDisruptionBudget", "hostNetwork: true", "PrometheusRule",
                     "grafana_dashboard"):
            self.assertIn(kind, more)

    def test_wrong_value_is_refused_by_name(self):
        done = helm("template", "weft", CHART, "--set", "relay.replica=1", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("replica", done.stderr)


if __name__ == "__main__":
    unittest.main()
