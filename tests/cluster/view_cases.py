# SPDX-License-Identifier: Apache-2.0
"""A tenant reads their Trace's events through the API server, and nothing of another tenant: what babeltrace2 reads of
the downloaded files are the events that the relay stored. For a class of tests that has weft installed."""

import io
import json
import pathlib
import signal
import subprocess
import tarfile
import tempfile
import uuid

from tests.cluster.plugin import User
from tests.cluster.relay_api import Visitor, get_url, relay_certificate_authority, token_of, view
from tests.cluster.relay_files import lines_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, TOP, get, kubectl, pod
from tests.cluster.with_weft import container_pids, send_signal, trace

READER = [{"apiGroups": ["weft.dev"], "resources": ["traces"], "verbs": ["get", "list"]},
          {"apiGroups": ["weft.dev"], "resources": ["traceviews"], "verbs": ["create", "get"]}]
TRACER = [{"apiGroups": ["weft.dev"], "resources": ["traces"], "verbs": ["get", "list", "create", "patch", "delete"]},
          {"apiGroups": ["weft.dev"], "resources": ["traceviews"], "verbs": ["create", "delete"]}]
LISTER = [{"apiGroups": ["weft.dev"], "resources": ["traces"], "verbs": ["get", "list"]}]
MAKER = [{"apiGroups": ["weft.dev"], "resources": ["traceviews"], "verbs": ["*"]}]


class ViewCases:
    """To be mixed into a WeftTest."""

    def account(self, namespace, name, rules):
        """A service account with a Role; kubectl's flag to act as it."""
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
                "rules": rules}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                   "subjects": [{"kind": "ServiceAccount", "name": name}]}
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, role, binding,
                   namespace=namespace)
        user = f"--as=system:serviceaccount:{namespace}:{name}"
        for rule in rules[-1:]:
            self.wait_for_right(namespace, user, rule["verbs"][0], f"{rule['resources'][0]}.{rule['apiGroups'][0]}")
        return user

    def record(self, *namespaces):
        """In each namespace a Trace `work` with some events of a tenant, which has ended; their folders at the API."""
        for namespace in namespaces:
            self.injected_namespace(namespace)
            args = ["--events", "5000", "--threads", "2"]
            self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=args),
                       trace("work", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=namespace)
        folders = []
        for namespace in namespaces:
            self.wait_for_pod(namespace, "tenant")
            self.wait_ready(namespace, "work", traced=1)
            self.run_tenant(namespace)
            self.end_by_time(namespace, "work")
            folders.append(f"work/{get(namespace, 'trace', 'work')['metadata']['uid']}")
        return folders

    def make_view(self, namespace, user, name, of_trace, seconds=600):
        """A TraceView as `user`; its token."""
        made, secret = view(name, of_trace, seconds)
        self.create(made, namespace=namespace, user=user)
        return f"{namespace}.{name}.{secret}"

    def download(self, visitor, namespace, folder, into):
        files = visitor.files(namespace, folder)
        for path, size in files.items():
            at = f"/v1/namespaces/{namespace}/traces/{folder}/files/{path}"
            half = size // 2
            first = visitor.get(at, Range=f"bytes=0-{half - 1}")
            rest = visitor.get(at, Range=f"bytes={half}-")
            self.assertEqual((first.status, rest.status), (206, 206))
            self.assertEqual(len(first.body) + len(rest.body), size)
            target = pathlib.Path(into, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(first.body + rest.body)
        return files

    def refuse_maker(self, namespace, user, made, why):
        refused = self.create(made, namespace=namespace, user=user, check=False)
        self.assertIn(why, refused.stderr)

    def test_a_tenant_reads_their_trace_and_no_other(self):
        mine, theirs = self.record("mine", "theirs")
        user = self.account("mine", "reader", READER)
        account = token_of("mine", "reader")
        token = self.make_view("mine", user, "look", "work")
        me = Visitor(account, token)
        self.wait_for(lambda: me.get("/v1/namespaces/mine/traces").status == 200, "the API does not answer")

        listed = me.get("/v1/namespaces/mine/traces").json()["traces"]
        self.assertEqual([t["folder"] for t in listed], [mine])
        with tempfile.TemporaryDirectory(prefix="weft-view-") as into:
            files = self.download(me, "mine", mine, into)
            self.assertEqual(listed[0]["files"], len(files))
            self.assertEqual(sorted(lines_in(into)), sorted(lines_in(trace_folder("mine", "work"))))
        archive = me.get(f"/v1/namespaces/mine/traces/{mine}/archive.tar")
        with tarfile.open(fileobj=io.BytesIO(archive.body)) as tar:
            self.assertEqual({one.name: one.size for one in tar}, {f"{mine}/{path}": files[path] for path in files})
        packed = me.get(f"/v1/namespaces/mine/traces/{mine}/archive.tar.zst")
        self.assertTrue(subprocess.run(["zstd", "-dc"], input=packed.body, capture_output=True, check=True).stdout ==
                        archive.body)
        self.assertLess(len(packed.body), len(archive.body) // 2)
        self.assertTrue(any(path.endswith("/metadata") for path in files))
        path = f"/v1/namespaces/mine/traces/{mine}/files/{next(iter(files))}"
        self.assertEqual(me.get(path, Range="bytes=999999999-").status, 416)
        self.assertEqual(me.get(path, Range="bytes=-1").status, 400)

        other_user = self.account("theirs", "reader", READER)
        with self.subTest("a guessed name of another namespace"):
            guesses = ("/v1/namespaces/theirs/traces", f"/v1/namespaces/theirs/traces/{theirs}/files",
                       "/v1/namespaces/nothing/traces", f"/v1/namespaces/theirs/traces/no/{uuid.uuid4()}/files",
                       f"/v1/namespaces/mine/traces/other/{uuid.uuid4()}/files")
            self.assertEqual({me.get(guess) for guess in guesses}, {me.get(guesses[0])})
            self.assertEqual(me.get(guesses[0]).status, 403)
        with self.subTest("a way out of the folder"):
            for way in ("../../../theirs", "..%2f..%2ftheirs", "%2e%2e/%2e%2e", "tenant/../../..", "%00"):
                self.assertIn(me.get(f"/v1/namespaces/mine/traces/{mine}/files/{way}").status, (301, 403, 404))
        with self.subTest("no token, a wrong secret, another one's, none of Kubernetes for weft"):
            wrong = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
            for bad in ("", wrong, token.replace("mine.", "theirs.", 1), "mine.look.short", account, "x" * 9000,
                        token.replace(".look.", ".none.")):
                self.assertIn(Visitor(account, bad).get("/v1/namespaces/mine/traces").status, (401, 431), bad)
        with self.subTest("a view of another namespace, and of another Trace"):
            foreign = Visitor(account, self.make_view("theirs", other_user, "look", "work"))
            self.assertEqual(foreign.get("/v1/namespaces/mine/traces").status, 403)
            beside = Visitor(account, self.make_view("mine", user, "beside", "another"))
            self.assertEqual(beside.get(f"/v1/namespaces/mine/traces/{mine}/files").status, 403)
            self.assertEqual(beside.get("/v1/namespaces/mine/traces").json(), {"traces": []})
        with self.subTest("an expired view, and a deleted one"):
            for seconds in (6, 30, 120):  # on a busy machine the first may be over before it is used
                short = Visitor(account, self.make_view("mine", user, f"short-{seconds}", "work", seconds=seconds))
                status = short.get("/v1/namespaces/mine/traces").status
                if status == 200:
                    break
            self.assertEqual(status, 200)
            self.wait_for(lambda: short.get("/v1/namespaces/mine/traces").status == 401, "it does not expire")
            kubectl("-n", "mine", "delete", "traceview", "look")
            self.wait_for(lambda: me.get("/v1/namespaces/mine/traces").status == 401, "it is believed for ever")
        self.assert_makers(user)
        self.assert_tokens_of_kubernetes(mine)

    def assert_makers(self, reader):
        """A TraceView gives its maker no more than they may `get`; it lasts an hour, and never changes."""
        maker = self.account("mine", "maker", MAKER)
        self.refuse_maker("mine", maker, view("steal", "work")[0], "needs the right to get its Trace")
        self.refuse_maker("mine", reader, view("long", "work", 3700)[0], "at most an hour")
        for field, bad in (("tokenSHA256", "00"), ("expires", "tomorrow"), ("expires", None)):
            self.assertNotEqual(self.create(view("bad", "work", **{field: bad})[0], namespace="mine", user=reader,
                                            check=False).returncode, 0)
        changed = kubectl("-n", "mine", maker, "patch", "traceview", "beside", "--type=merge", "-p",
                          json.dumps({"spec": {"trace": "work"}}), check=False)
        self.assertIn("cannot be changed", changed.stderr)

    def assert_tokens_of_kubernetes(self, folder):
        """In the cluster: a token for the audience weft-relay, and the certificate of the controller's CA."""
        self.account("mine", "nothing", [])
        address = get("weft", "pod", "weft-relay-0")["status"]["podIP"]
        host = "weft-relay-0.weft-relay.weft.svc"
        with tempfile.NamedTemporaryFile(prefix="weft-ca-") as ca:
            ca.write(relay_certificate_authority())
            ca.flush()

            def ask(path, account, *flags):
                headers = {"Authorization": "Bearer " + token_of("mine", account, *flags)}
                return get_url(f"https://{host}:4463{path}", headers, "--cacert", ca.name,
                               "--resolve", f"{host}:4463:{address}").status

            files = f"/v1/namespaces/mine/traces/{folder}/files"
            self.assertEqual(ask(files, "reader", "--audience=weft-relay"), 200)
            self.assertEqual(ask(files, "reader"), 401)
            self.assertEqual(ask(files, "nothing", "--audience=weft-relay"), 403)
            self.assertEqual(ask("/v1/namespaces/theirs/traces", "reader", "--audience=weft-relay"), 403)
            # The API server does not shorten these.
            for way in ("../../../theirs", "tenant/../../../../../theirs", "%2e%2e/x", "/etc/passwd"):
                self.assertEqual(ask(f"{files}/{way}", "reader", "--audience=weft-relay"), 404)

    def events_shown(self, text):
        """JSON lines of events of the tenant, sorted."""
        return sorted(line for line in text.splitlines() if '"tenant:' in line)

    def record_by_plugin(self, user, folder):
        """`kubectl weft run` until ^C, while a tenant emits; returns what it showed, and how many were emitted."""
        shown, said = folder / "shown", folder / "said"
        with shown.open("w") as out, said.open("w") as err:
            process = user.begin("run", "-l", "app=tenant", "-e", "tenant:*", "--json", "--name=watched", "--keep",
                                 stdout=out, stderr=err)
        self.addCleanup(process.kill)
        self.wait_for(lambda: "records 1 of 1 pods" in said.read_text() or process.poll() is not None,
                      "the Trace does not record")
        before = self.emitted("seen", "tenant")
        emitted = self.run_tenant("seen") - before
        self.wait_for(lambda: len(self.events_shown(shown.read_text())) >= emitted or process.poll() is not None,
                      "the events are not shown while the Trace records")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=PATIENCE), 0, said.read_text())
        return self.events_shown(shown.read_text()), emitted

    def replace_relays_certificate(self):
        """Without its Secret, a controller that starts makes another one; waits until the relay shows it."""
        old = get("weft", "secret", "weft-relay-tls")["data"]["tls.crt"]
        kubectl("-n", "weft", "delete", "secret", "weft-relay-tls")
        kubectl("-n", "weft", "rollout", "restart", "deployment/weft-controller")
        self.wait_for(lambda: (found := get("weft", "secret", "--field-selector=metadata.name=weft-relay-tls")["items"])
                      and found[0]["data"]["tls.crt"] != old, "there is no new certificate")

    def attach_babeltrace(self, user, name, shown):
        """A viewer of `kubectl weft live NAME --serve`, which ends with the Trace; what it prints goes into a file."""
        serving = user.begin("live", name, "--serve", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(serving.stdout.close)
        self.addCleanup(serving.kill)
        url = serving.stdout.readline().split()[-1]
        with shown.open("w") as out:
            viewer = subprocess.Popen(
                [str(TOP / "dev"), "cluster", "run", "babeltrace2", "--no-delta", "-c", "source.ctf.lttng-live",
                 "--params", f'inputs=["{url}"],session-not-found-action="end"'],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
        self.addCleanup(viewer.kill)
        return viewer

    def test_live_goes_on_while_weft_is_killed_and_certificates_change(self):
        self.injected_namespace("lasting")
        self.account("lasting", "tracer", TRACER)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=["--events", "2000", "--threads", "2"]),
                   trace("long", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace="lasting")
        self.wait_for_pod("lasting", "tenant")
        self.wait_ready("lasting", "long", traced=1)
        with tempfile.TemporaryDirectory(prefix="weft-lasting-") as name:
            folder = pathlib.Path(name)
            shown, said = folder / "shown", folder / "said"
            with shown.open("w") as out, said.open("w") as err:
                process = User(folder, "lasting", "tracer").begin("live", "long", "--json", stdout=out, stderr=err)
            self.addCleanup(process.kill)
            viewer = self.attach_babeltrace(User(folder, "lasting", "tracer"), "long", folder / "viewed")

            def a_round_is_shown():
                emitted = self.run_tenant("lasting")
                self.wait_for(lambda: len(self.events_shown(shown.read_text())) >= emitted or process.poll() is not None,
                              "the events are not shown")
                self.assertIsNone(process.poll(), said.read_text())
                self.assertEqual(len(set(self.events_shown(shown.read_text()))), emitted)

            a_round_is_shown()
            for component, program in (("relay", "weft-relay"), ("agent", "weft-consumer")):
                with self.subTest(killed=program):
                    pids = [pid for one in self.pods_of(component) for pid in container_pids("weft", one, program)]
                    self.assertTrue(pids)
                    send_signal(pids, signal.SIGKILL)
                    a_round_is_shown()
            self.replace_relays_certificate()
            a_round_is_shown()
            emitted = self.emitted("lasting", "tenant")
            counts = self.end_by_time("lasting", "long")
            self.assertEqual((counts["delivered"], counts["lost"]), (emitted, 0))
            self.assertEqual(process.wait(timeout=PATIENCE), 0, said.read_text())
            self.assertEqual(len(self.events_shown(shown.read_text())), emitted, "an event is shown twice")
            self.assertEqual(viewer.wait(timeout=PATIENCE), 0)
            # Without the times: those of late events are later in a viewer (docs/adr/0052).
            viewed, stored = (sorted(line.partition("] ")[2] for line in lines) for lines in (
                (folder / "viewed").read_text().splitlines(keepends=True), lines_in(trace_folder("lasting", "long"))))
            self.assertEqual(viewed, stored)

    def assert_top_and_doctor(self, me, stranger, emitted):
        """A user with a Role in one namespace sees rates of their Trace, and what is wrong, as far as they may."""
        code, said = me.run("top", "watched", "-o", "json")
        self.assertEqual(code, 0, said)
        found = json.loads(said)["traces"][0]
        self.assertEqual([found[key] for key in ("name", "events", "discarded", "lost")], ["watched", emitted, 0, 0])
        self.assertEqual([one["name"] for one in found["pods"]], ["tenant"])
        code, said = me.run("doctor")
        self.assertEqual(code, 0, said)
        for part in ("API server: v1.", "relay: it answers", "Trace watched: Completed", "nothing is wrong"):
            self.assertIn(part, said)
        for part in ("may not list pods in the namespace seen", "may not get namespaces", "may not list pods in the "
                     "namespace weft"):
            self.assertIn(part, said)
        code, said = stranger.run("doctor")
        self.assertEqual(code, 0, said)
        self.assertIn("may not list traces.weft.dev in the namespace seen", said)
        self.assertNotIn("watched", said)
        code, said = me.run("doctor", "none")
        self.assertEqual(code, 121, said)
        self.assertEqual(me.run("__complete", "live", "w")[1], "watched\n:4\n")

    def test_a_user_runs_and_reads_with_kubectl_weft(self):
        self.injected_namespace("seen")
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}, args=["--events", "5000", "--threads", "2"]),
                   namespace="seen")
        self.wait_for_pod("seen", "tenant")
        with tempfile.TemporaryDirectory(prefix="weft-plugin-") as name:
            folder = pathlib.Path(name)
            users = {}
            for account, rules in (("tracer", TRACER), ("lister", LISTER), ("nothing", [])):
                self.account("seen", account, rules)
                users[account] = User(folder, "seen", account)
            me = users["tracer"]
            shown, emitted = self.record_by_plugin(me, folder)
            self.assertEqual(len(shown), emitted)
            self.assertEqual(len(set(shown)), emitted, "an event is shown twice")
            self.assertRegex(me.run("list")[1], rf"watched +Completed +\S+ +{emitted} +0 ")
            status = me.run("status", "watched")[1]
            self.assertIn(f"{emitted} recorded, {emitted} delivered, 0 lost", status)
            self.assertIn("Next:    kubectl weft download watched -n seen", status)
            code, said = me.run("download", "watched", "-o", folder / "out")
            self.assertEqual(code, 0, said)
            self.assertEqual(sorted(lines_in(folder / "out")), sorted(lines_in(trace_folder("seen", "watched"))))
            self.assertEqual(self.events_shown(me.run("live", "watched", "--json")[1]), shown)
            self.assert_top_and_doctor(me, users["nothing"], emitted)
            self.assertEqual(get("seen", "traceviews")["items"], [])
            for account, words, refusal in (
                    ("nothing", ["list"], "may not list traces.weft.dev in the namespace seen"),
                    ("lister", ["live", "watched"], "may not create traceviews.weft.dev in the namespace seen"),
                    ("lister", ["run", "-l", "a=b", "-e", "a:b"], "may not create traces.weft.dev"),
                    ("lister", ["top", "watched"], "may not create traceviews.weft.dev"),
                    ("tracer", ["top", "-n", "default"], "may not list traces.weft.dev in the namespace default"),
                    ("tracer", ["live", "watched", "-n", "default"], "may not get traces.weft.dev in the namespace "),
                    ("tracer", ["download", "watched", "-n", "default"], "may not get traces.weft.dev in the "),
                    ("tracer", ["run", "-n", "default", "-l", "a=b", "-e", "a:b"], "may not create traces.weft.dev"),
                    ("tracer", ["list", "-A"], "may not list traces.weft.dev in the whole cluster"),
                    ("tracer", ["list", "-n", "default"], "may not list traces.weft.dev in the namespace default")):
                code, said = users[account].run(*words)
                self.assertEqual(code, 121, said)
                self.assertIn(refusal, said)
