#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl-weft against an API server of the test's own, which has TLS, one Trace, and a relay behind its proxy whose
files are a local recording that grows packet by packet. What is shown and downloaded is what was recorded."""

import base64
import collections
import hashlib
import http.server
import itertools
import json
import os
import pathlib
import pty
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

from tests.local.weft_local import BUILD, PATIENCE, WEFT, LocalTest

PROGRAM = BUILD / "bin" / "kubectl-weft"
UID = "6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52"
TOKEN = "the-users-token"
TRACES = "/apis/weft.dev/v1alpha1/namespaces/shop/traces"
VIEWS = "/apis/weft.dev/v1alpha1/namespaces/shop/traceviews"
RELAY = "/api/v1/namespaces/weft/services/https:weft-relay:api/proxy/v1/namespaces/shop/traces"
FILES = f"{RELAY}/sales/{UID}/files"
PARTS = f"{RELAY}/sales/{UID}/parts"
RATES = f"{RELAY}/sales/{UID}/rates"
SESSIONS = "/apis/weft.dev/v1alpha1/namespaces/shop/tracesessions"
PODS = "/api/v1/namespaces/shop/pods"
AGENTS = "/api/v1/namespaces/weft/pods"


def trace(phase="Recording"):
    ready = {"type": "Ready", "status": "True", "reason": "AllNodes", "message": "1 of 1 nodes record",
             "lastTransitionTime": "2026-01-02T03:04:05Z"}
    skipped = {"reason": "NoLibrary", "message": "they began before weft", "count": 1, "names": ["old"]}
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "Trace",
            "metadata": {"name": "sales", "namespace": "shop", "uid": UID, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"pods": {"selector": {"matchLabels": {"app": "shop"}}}, "user": {"events": [{"name": "*"}]}},
            "status": {"phase": phase, "observedGeneration": 1, "conditions": [ready], "relay": "weft-relay-0",
                       "folder": f"shop/sales/{UID}", "pods": {"matched": 2, "traced": 1, "skipped": [skipped]},
                       "events": {"recorded": 7, "delivered": 5, "missing": 2,
                                  "reasons": [{"stage": "ring", "reason": "full", "count": 2}]}}}


def healthy():
    """What `doctor` looks at beside Traces and the relay: nothing is wrong with it."""
    agent = {"metadata": {"name": "weft-agent-x"}, "spec": {"nodeName": "n1"},
             "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    session = {"apiVersion": "weft.dev/v1alpha1", "kind": "TraceSession",
               "metadata": {"name": "sales-1", "namespace": "shop", "uid": UID},
               "spec": {"nodeName": "n1", "traceName": "sales", "traceUid": UID, "traceGeneration": 1, "state": "Active",
                        "relay": {"name": "weft-relay-0", "control": "r:1", "data": "r:2"}, "record": trace()["spec"]},
               "status": {"phase": "Recording", "observedGeneration": 1, "pods": {"matched": 1, "traced": 1}}}
    kinds = ("traces", "traceviews", "tracesessions", "clustertraces")
    return {"/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
            "/apis/weft.dev/v1alpha1": {"resources": [{"name": kind} for kind in kinds]},
            "/api/v1/namespaces/shop": {"metadata": {"name": "shop", "labels": {"weft.dev/inject": "enabled"}}},
            PODS: {"items": [{"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}}]},
            AGENTS: {"items": [agent]},
            "/api/v1/nodes": {"items": [{"metadata": {"name": "n1"}}]},
            SESSIONS: {"items": [session]}}


def packet_ends(data):
    """Where the packets of a stream's file end; see tests/cluster/relay_files.py for the layout."""
    at, ends = 0, []
    while at < len(data):
        at += struct.unpack_from("<Q", data, at + 56)[0] // 8
        ends.append(at)
    return ends


class Api:
    """The API server, and the relay behind it. `shown`: how many bytes of each file the relay has by now."""

    def __init__(self, folder, files):
        self.traces = {"sales": trace()}
        self.made_status = {}    # of Traces that are made, where it is not that of trace()
        self.files = files
        self.shown = {path: len(data) for path, data in files.items()}
        self.views = {}
        self.forbidden = set()   # verbs
        self.forbidden_paths = set()
        self.objects = healthy()
        self.query = ""          # of the last request to the relay
        self.rates = {"seconds": 5, "pods": []}
        self.requests = []
        self.most = None         # bytes of a file in one answer
        self.served = collections.Counter()
        certificate = folder / "server.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
                        folder / "server.key", "-out", certificate, "-subj", "/CN=api", "-addext",
                        "subjectAltName=DNS:api.test"], check=True, capture_output=True)
        self.authority = certificate.read_bytes()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                path, _, query = self.path.partition("?")
                status, reply = api.answer(self.command, path, self.headers, body, query)
                self.send_response(status)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, folder / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method, path, headers, body, query=""):
        self.requests.append((method, path, dict(headers)))
        if headers["Authorization"] != f"Bearer {TOKEN}":
            return self.status(401, "Unauthorized")
        verb = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[method]
        if path == TRACES and method == "GET":
            verb = "list"
        if path in self.objects and path not in self.forbidden_paths:
            return 200, json.dumps(self.objects[path]).encode()
        kind = (path.split("/") + 6 * [""])[6] if path.startswith("/apis/") else "services/proxy"
        if verb in self.forbidden or path in self.forbidden_paths:
            return self.status(403, f'{kind}.weft.dev is forbidden: User "jane" cannot {verb} resource "{kind}" in API '
                                    'group "weft.dev" in the namespace "shop"')
        if not path.startswith((TRACES, VIEWS, RELAY)):
            return self.status(404, "the server could not find the requested resource")
        if path == RELAY:
            return 401, b"no token\n"
        if path.startswith((FILES, RATES, PARTS)):
            return self.relay(path[len(FILES):] if path.startswith(FILES) else path, headers, query)
        if path.startswith(VIEWS):
            return self.view(method, path, body)
        return self.trace(method, path, body)

    @staticmethod
    def status(code, message):
        return code, json.dumps({"kind": "Status", "message": message, "code": code}).encode()

    def trace(self, method, path, body):
        name = path[len(TRACES) + 1:]
        if method == "POST":
            made = trace() | {"spec": json.loads(body)["spec"]}
            made["status"] |= self.made_status
            self.traces["sales"] = made
            return 201, json.dumps(made).encode()
        if not name:
            return 200, json.dumps({"items": list(self.traces.values())}).encode()
        if name not in self.traces:
            return self.status(404, f'traces.weft.dev "{name}" not found')
        if method == "PATCH":
            self.traces[name]["status"]["phase"] = "Completed"
        found = self.traces.pop(name) if method == "DELETE" else self.traces[name]
        return 200, json.dumps(found).encode()

    def view(self, method, path, body):
        if method == "DELETE":
            self.views.pop(path.rpartition("/")[2])
            return 200, b"{}"
        made = json.loads(body)
        made["metadata"]["name"] = f"{made['metadata']['generateName']}{len(self.requests)}"
        self.views[made["metadata"]["name"]] = made["spec"]
        return 201, json.dumps(made).encode()

    def relay(self, path, headers, query):
        self.query = query if path in ("", RATES) else self.query
        namespace, view, secret = (headers["X-Weft-Token"] or "..").split(".")
        spec = self.views.get(view, {})
        if namespace != "shop" or spec.get("tokenSHA256") != hashlib.sha256(secret.encode()).hexdigest():
            return 401, b"no such view\n"
        if path == RATES:
            return 200, json.dumps(self.rates).encode()
        if path == PARTS:
            return 200, b"".join(map(self.part, query.split("&")))
        if not path and query:
            return 200, json.dumps({"files": self.narrowed}).encode()
        if not path:
            shown = [{"path": path, "size": size} for path, size in list(self.shown.items()) if size]
            return 200, json.dumps({"files": shown}).encode()
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", headers["Range"]).groups())
        if path[1:] not in self.files:
            return 404, b"nothing of that name is stored\n"
        data = self.files[path[1:]][:self.shown[path[1:]]][first:last + 1]
        self.served[path[1:]] += len(data[:self.most])
        return 206, data[:self.most]


    def part(self, asked):
        first, size, path = asked.removeprefix("part=").split(":")
        if path not in self.files:
            return b"\xff" * 4
        data = self.files[path][:self.shown[path]][int(first):int(first) + int(size)][:self.most]
        self.served[path] += len(data)
        return struct.pack("<I", len(data)) + data


class Kubectl(LocalTest):
    def setUp(self):
        super().setUp()
        self.recorded = self.folder / "recorded"
        self.record()
        self.api = Api(self.folder, self.files())
        self.addCleanup(self.api.end)
        self.kubeconfig = self.folder / "kubeconfig"
        self.write_kubeconfig({"token": TOKEN})

    def record(self, *options, runner=()):
        subprocess.run([WEFT, "record", "-q", "--event", "emitter:*", "-o", self.recorded, "--", *runner,
                        *self.emitter("--events", "3000", "--threads", "2", *options)], check=True, capture_output=True)

    def files(self):
        return {str(f.relative_to(self.recorded)): f.read_bytes()
                for f in sorted(self.recorded.rglob("*")) if f.is_file()}

    def write_kubeconfig(self, user, **cluster):
        port = self.api.server.server_address[1]
        cluster = {"server": f"https://127.0.0.1:{port}", "tls-server-name": "api.test",
                   "certificate-authority-data": base64.b64encode(self.api.authority).decode(), **cluster}
        self.kubeconfig.write_text(json.dumps(
            {"current-context": "c", "clusters": [{"name": "k", "cluster": cluster}],
             "users": [{"name": "u", "user": user}],
             "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "shop"}}]}))

    def begin(self, *words, stdout=subprocess.PIPE):
        process = subprocess.Popen([str(PROGRAM), *map(str, words), f"--kubeconfig={self.kubeconfig}"],
                                   stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder)
        self.running.append(process)
        return process

    def weft(self, *words, status=0):
        out, err = self.finish(self.begin(*words), status)
        return out + err

    def viewed(self, folder, *options):
        return subprocess.run([WEFT, "view", *options, folder], check=True, capture_output=True, text=True).stdout

    def test_lists_and_explains(self):
        self.assertRegex(self.weft("list"), r"sales +Recording +1/2 +5 +2 ")
        said = self.weft("status", "sales")
        for part in ("1 not traced, NoLibrary: they began before weft", "2 ring/full", "old", "AllNodes",
                     "Next:    kubectl weft live sales -n shop"):
            self.assertIn(part, said)
        self.assertNotIn("Removed:", said)
        self.api.traces["sales"]["status"]["storage"] = {"removedEvents": 70, "keptBytes": 10}
        self.assertIn("Removed: 70 events by the relay", self.weft("status", "sales"))
        for command in ("status", "live", "download", "top", "doctor"):
            self.assertIn("there is no Trace none in the namespace shop", self.weft(command, "none", status=121))
        self.assertEqual([one["metadata"]["name"] for one in json.loads(self.weft("list", "-o", "json"))], ["sales"])
        self.api.forbidden = {"list"}
        self.assertIn("missing right: jane may not list traces.weft.dev in the namespace shop",
                      self.weft("list", status=121))

    def test_says_what_was_mistyped(self):
        for words, status, said in ((("lvie", "sales"), 120, "there is no command lvie (see: kubectl weft --help)"),
                                    (("live", "sales", "a", "b"), 120, "not understood: a b (see: kubectl weft live"),
                                    (("live",), 120, "(see: kubectl weft live --help)"),
                                    (("live", ""), 120, "TRACE"),
                                    (("live", "../../x"), 121, '"../../x" is no name of a Trace'),
                                    (("status", "a\x1b[2J"), 121, '"a?[2J" is no name of a Trace'),
                                    (("list", "-n", "a b"), 121, '"a b" is no name of a namespace'),
                                    (("list", "--weft-namespace=a/b"), 121, '"a/b" is no name of a namespace')):
            self.assertIn(said, self.weft(*words, status=status))
        self.assertEqual(self.api.requests, [])
        (self.folder / "file").write_text("")
        self.assertIn("Not a directory", self.weft("download", "sales", "-o", self.folder / "file", status=122))

    def test_proves_and_verifies(self):
        script = self.folder / "get-token"
        script.write_text('#!/bin/sh\nprintf \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
                          '"status":{"token":"%s"}}\' "$1"\n')
        script.chmod(0o755)
        self.write_kubeconfig({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./get-token",
                                        "args": [TOKEN]}, "as": "other", "as-groups": ["g"]})
        self.assertIn("sales", self.weft("list"))
        seen = self.api.requests[-1][2]
        self.assertEqual((seen["Impersonate-User"], seen["Impersonate-Group"]), ("other", "g"))
        self.write_kubeconfig({"token": "wrong"})
        self.assertIn("log in again", self.weft("list", status=121))
        count = len(self.api.requests)
        for cluster in ({"tls-server-name": ""}, {"tls-server-name": "other.test"},
                        {"certificate-authority-data": ""}):
            self.write_kubeconfig({"token": TOKEN}, **cluster)
            self.assertIn("the API server is https://127.0.0.1:", self.weft("list", status=123))
        self.assertEqual(len(self.api.requests), count)
        self.write_kubeconfig({"token": TOKEN}, **{"tls-server-name": "", "certificate-authority-data": "",
                                                   "insecure-skip-tls-verify": True})
        self.assertIn("sales", self.weft("list"))
        self.kubeconfig.unlink()
        self.assertIn("No such file or directory; name another file with --kubeconfig", self.weft("list", status=121))

    def download(self, *options, status=0):
        """Returns what was said, and the bytes of streams that were fetched."""
        self.api.served.clear()
        said = self.weft("download", "sales", "-o", self.folder / "out", *options, status=status)
        return said, sum(size for path, size in self.api.served.items() if not path.endswith("metadata"))

    def test_downloads_and_resumes(self):
        self.api.most = 5000  # bytes in each answer
        streams = [path for path in self.api.files if not path.endswith("metadata")]
        whole = dict(self.api.shown)
        self.api.shown |= {path: packet_ends(self.api.files[path])[0] for path in streams}
        self.download()
        here = sum(self.api.shown[path] for path in streams)
        self.api.shown = whole
        _, fetched = self.download()
        self.assertEqual(self.viewed(self.folder / "out"), self.viewed(self.recorded))
        # The end of what is here already is fetched again, to be compared.
        self.assertLessEqual(fetched, sum(whole[path] for path in streams) - here + 4096 * len(streams))
        self.assertLessEqual(self.download()[1], 4096 * len(streams))
        self.assertEqual(self.api.views, {})

        other = self.folder / "other"
        other.mkdir()
        (other / "mine").touch()
        self.assertIn("contains something else", self.weft("download", "sales", "-o", other, status=121))
        self.assertIn("no events of this pod", self.download("--pod", "none", status=121)[0])
        self.api.traces["sales"]["status"]["folder"] = ""
        self.assertIn("kubectl weft status", self.weft("download", "sales", status=121))

    def split(self):
        """Makes another recording, of many packets, and puts each packet behind the second one into a chunk of its own,
        as a relay does. Returns, for each stream, its chunks, the oldest first."""
        self.recorded = self.folder / "long"
        # On one CPU: all packets are in one stream then.
        self.record("--pause-us", "2000", runner=("taskset", "-c", str(min(os.sched_getaffinity(0)))))
        self.api.files = self.files()
        streams = []
        for path in [path for path in self.api.files if not path.endswith("metadata")]:
            data, chunks, begin = self.api.files.pop(path), [], 0
            for number, end in enumerate(packet_ends(data)):
                if number != 0:
                    chunks.append(path if number == 1 else f"{path}.{number}.{number * 10}")
                    self.api.files[chunks[-1]] = data[begin:end]
                    begin = end
            streams.append(chunks)
        self.api.shown = {path: len(data) for path, data in self.api.files.items()}
        return streams

    def remove(self, path):
        del self.api.shown[path]
        del self.api.files[path]

    def test_downloads_chunks(self):
        chunks = max(self.split(), key=len)
        self.assertGreater(len(chunks), 3)
        self.download()
        whole = self.viewed(self.recorded)
        self.assertEqual(self.viewed(self.folder / "out"), whole)
        # The relay removed the oldest chunk, and cut off and wrote again the newest one, which has another name now.
        self.remove(chunks[0])
        self.api.files[chunks[-1] + "1"] = self.api.files[chunks[-1]]
        self.api.shown[chunks[-1] + "1"] = self.api.shown[chunks[-1]]
        self.remove(chunks[-1])
        self.download()
        self.assertEqual(self.viewed(self.folder / "out"), whole)
        # It removes one while it is asked for it.
        del self.api.files[chunks[1]]
        self.weft("download", "sales", "-o", self.folder / "later")
        later = self.events(self.viewed(self.folder / "later", "--json"))
        self.assertLess(set(later), set(self.events(self.viewed(self.recorded, "--json"))))

    def test_live_goes_on_while_chunks_are_removed(self):
        streams = self.split()
        whole = dict(self.api.shown)
        for path in itertools.chain(*streams):
            self.api.shown[path] = 0
        shown = self.folder / "shown"
        with shown.open("w", encoding="utf-8") as stdout:  # a pipe would be full
            process = self.begin("live", "sales", "--json", stdout=stdout)
        for chunks in itertools.zip_longest(*streams):
            new = [path for path in chunks if path]
            self.api.shown |= {path: whole[path] for path in new}
            self.wait_for(lambda new=new: all(self.api.served[path] >= whole[path] for path in new))
            for path in new:
                self.remove(path)
        self.api.traces["sales"]["status"]["phase"] = "Completed"
        _, err = self.finish(process)
        self.assertEqual(self.events(shown.read_text(encoding="utf-8")),
                         self.events(self.viewed(self.recorded, "--json")), err)

    def test_downloads_a_time(self):
        """The relay names bytes of each stream; the folder gets those, from its first byte on."""
        path = next(path for path in self.api.files if not path.endswith("metadata"))
        ends = packet_ends(self.api.files[path])
        metadata = str(pathlib.PurePath(path).with_name("metadata"))
        self.api.narrowed = [{"path": metadata, "size": len(self.api.files[metadata])},
                             {"path": path, "size": ends[1], "offset": ends[0]}]
        when = ("--since", "2026-01-02T03:04:05Z", "--until", "2026-01-02T03:04:06.5Z")
        self.download(*when)
        self.assertEqual(self.api.query, "since=1767323045000000000&until=1767323046500000000")
        self.assertEqual((self.folder / "out" / path).read_bytes(), self.api.files[path][ends[0]:ends[1]])
        shown = self.viewed(self.folder / "out").splitlines()
        self.assertTrue(shown)
        self.assertTrue(all("emitter:" in line for line in shown))
        self.assertLessEqual(self.download(*when)[1], 4096)
        self.assertIn("contains something else", self.download(status=121)[0])
        self.assertIn("is no time", self.download("--since", "yesterday", status=121)[0])
        self.assertIn("later than --until", self.download("--since", "1m", "--until", "2m", status=121)[0])
        self.api.narrowed = self.api.narrowed[:1]
        self.assertIn("no events of this time", self.download("--since", "1m", status=121)[0])

    def test_top_shows_rates(self):
        counts = {"events": 50, "bytes": 4096, "discarded": 5, "lost": 1}
        self.api.rates["pods"] = [{"pod": "shop-1", "total": counts} |
                                  {name: [0, 0, 0, 0, value] for name, value in counts.items()}]
        for words in (("top",), ("top", "sales"), ("top", "--once")):
            self.assertRegex(self.weft(*words), r"sales +shop-1 +10.0 +819 bytes/s +1.0 +0.2 +5 +1\n")
        shown = json.loads(self.weft("top", "-o", "json"))
        self.assertEqual(shown["traces"][0]["pods"][0]["eventsPerSecond"], 10)
        self.assertEqual((self.api.query, self.api.views), ("seconds=5", {}))
        self.api.forbidden = {"create"}
        self.assertIn("may not create traceviews.weft.dev", self.weft("top", "sales", status=121))
        self.api.forbidden = set()
        self.api.traces = {}
        self.assertIn("no Trace records", self.weft("top"))

    def test_top_redraws_a_terminal(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([str(PROGRAM), "top", f"--kubeconfig={self.kubeconfig}"],
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        self.running.append(process)
        os.close(theirs)
        shown = b""
        while shown.count(b"\033[H") < 2:
            shown += os.read(ours, 4096)
        self.assertIn(b"sales   all 0", shown)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        os.close(ours)
        self.assertEqual(self.api.views, {})

    def test_doctor_finds_what_is_wrong(self):
        self.api.traces["sales"]["status"]["pods"]["skipped"] = []
        self.api.traces["sales"]["status"]["events"] = {"recorded": 5, "delivered": 5}
        smaller = {"type": "BuffersGranted", "status": "False", "reason": "MemoryLimit", "message": "smaller",
                   "lastTransitionTime": "2026-01-02T03:04:05Z"}
        self.api.traces["sales"]["status"]["conditions"].append(smaller | {"message": "n1: smaller"})
        self.api.objects[SESSIONS]["items"][0]["status"]["conditions"] = [smaller]
        said = self.weft("doctor")
        self.assertRegex(said, "note +Trace sales: BuffersGranted is False")
        self.assertEqual(said.count("BuffersGranted"), 1, "the Trace quotes its node")
        for part in ("API server: v1.34.4", "relay: it answers", "namespace shop: it has the label", "node n1: its agent",
                     "Trace sales, node n1: Recording, 1 of 1 pods traced", "the relay has", "nothing is wrong"):
            self.assertIn(part, said)
        self.assertEqual(self.api.views, {})

        self.api.traces["sales"] = trace()
        self.api.objects["/api/v1/namespaces/shop"]["metadata"]["labels"] = {}
        self.api.objects["/version"]["minor"] = "31+"
        self.api.objects[AGENTS]["items"][0]["status"] = {}
        self.api.objects[PODS]["items"][0]["spec"]["nodeName"] = "n2"
        said = self.weft("doctor", "sales", status=1)
        for part in ("too old", "kubectl label namespace shop weft.dev/inject=enabled", "1 pod is not traced, NoLibrary",
                     "2 events were lost: 2 ring/full", "node n1: its agent is not ready", "node n2: it has pods",
                     "wrong: 6\n"):
            self.assertIn(part, said)
        self.assertIn("there is no Trace none", self.weft("doctor", "none", status=121))
        del self.api.objects["/apis/weft.dev/v1alpha1"]
        self.assertIn("this cluster has no weft.dev/v1alpha1", self.weft("doctor", status=1))

    def test_doctor_names_missing_rights(self):
        self.api.traces["sales"]["status"]["pods"]["skipped"] = []
        self.api.traces["sales"]["status"]["events"] = {}
        self.api.forbidden_paths = {"/api/v1/nodes", AGENTS, PODS, SESSIONS, "/api/v1/namespaces/shop"}
        said = self.weft("doctor")
        self.assertEqual(said.count("unknown  "), 4, said)
        self.assertIn("may not get tracesessions.weft.dev", said)
        self.assertIn("nothing is wrong", said)

    def test_completes(self):
        def complete(*words):
            return subprocess.run([PROGRAM, "__complete", *words], check=True, capture_output=True, text=True,
                                  env=dict(os.environ, KUBECONFIG=str(self.kubeconfig))).stdout
        self.assertEqual(complete("live", "s"), "sales\n:4\n")
        self.assertIn("doctor\t", complete("d"))
        self.assertEqual(complete("completion", ""), "bash\nfish\nzsh\n:4\n")
        script = self.weft("completion", "bash") + """
COMP_WORDS=(kubectl-weft status sa) COMP_CWORD=2; _kubectl_weft; printf '%s,' "${COMPREPLY[@]}"
COMP_WORDS=(kubectl-weft sta) COMP_CWORD=1; _kubectl_weft; printf '%s,' "${COMPREPLY[@]}"
COMP_WORDS=(kubectl-weft '') COMP_CWORD=1; _kubectl_weft; printf '%s' "${#COMPREPLY[@]}"
"""
        path = f"{PROGRAM.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True,
                              env=dict(os.environ, PATH=path, KUBECONFIG=str(self.kubeconfig)))
        self.assertEqual(done.stdout, "sales,status,8")

    def test_refuses_hostile_names(self):
        for name in ("../../etc/x", "/etc/x", ".bashrc", "a/../b"):
            self.api.files, self.api.shown = {name: b"x"}, {name: 1}
            self.assertIn("none of a trace", self.weft("download", "sales", "-o", self.folder / "out", status=123))

    def grow(self):
        """The relay gets the packets one by one, those of one stream after those of another."""
        ends = {path: packet_ends(data) for path, data in self.api.files.items() if not path.endswith("metadata")}
        while any(ends.values()):
            for path, left in ends.items():
                if left:
                    self.api.shown[path] = left.pop(0)
            time.sleep(0.15)

    def hide_streams(self):
        self.api.shown = {path: len(data) if path.endswith("metadata") else 0 for path, data in self.api.files.items()}

    def events(self, text):
        return sorted(json.dumps(json.loads(line)) for line in text.splitlines() if '"' in line)

    def test_live_shows_each_event_once(self):
        self.hide_streams()
        process = self.begin("live", "sales", "--json")
        self.grow()
        self.api.traces["sales"]["status"]["phase"] = "Completed"
        out, err = self.finish(process)
        self.assertEqual(self.events(out), self.events(self.viewed(self.recorded, "--json")), err)
        self.assertEqual(self.api.views, {})

    def test_live_ends_with_its_reader(self):
        process = self.begin("live", "sales")
        for _ in range(10):
            self.assertIn("emitter:", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(timeout=PATIENCE), 0, process.stderr.read())
        process.stderr.close()
        self.assertEqual(self.api.views, {})

    def interrupt(self, *words):
        """Sends ^C to a command whose Trace is over and whose reader reads nothing. Returns events and messages."""
        process = self.begin(*words, "--json")
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        # A thread of the process takes the signal, which is pending until then.
        self.wait_for(lambda: "ShdPnd:\t0000000000000000" in
                      pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8"))
        shown = first + process.stdout.read()
        err = self.finish(process)[1]
        self.assertEqual(self.api.views, {})
        return self.events(shown), err

    def test_an_interrupt_ends_the_last_round_as_any_other(self):
        every = self.events(self.viewed(self.recorded, "--json"))
        self.api.made_status = {"phase": "Completed"}
        self.api.traces["sales"]["status"] |= self.api.made_status
        shown, _ = self.interrupt("live", "sales")
        self.assertLessEqual(set(shown), set(every))
        shown, err = self.interrupt("run", "-l", "app=shop", "-e", "emitter:*")
        self.assertEqual(shown, every, err)
        self.assertEqual(self.api.traces, {})
        self.assertNotIn("PATCH", [request[0] for request in self.api.requests])

    def test_a_signal_ends_a_question_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.write_kubeconfig({"token": TOKEN}, server=f"https://127.0.0.1:{silent.getsockname()[1]}")
            process = self.begin("list")
            silent.settimeout(PATIENCE)
            with silent.accept()[0]:
                # SIGINT is ignored where a shell has begun the tests in the background.
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=PATIENCE), -signal.SIGTERM)
        process.communicate()

    def test_live_refuses_a_port_that_it_cannot_have(self):
        for words in (("--serve=70000",), ("--serve=x",), ("--serve", "--json"), ("--json", "--indent")):
            self.weft("live", "sales", *words, status=120)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            said = self.weft("live", "sales", f"--serve={taken.getsockname()[1]}", status=121)
        self.assertIn("name another port with --serve=PORT", said)
        self.assertEqual(self.api.views, {})

    def test_run_waits_for_pods_as_long_as_its_duration(self):
        self.api.made_status = {"phase": "Pending", "conditions": [], "folder": "", "pods": {"matched": 0, "traced": 0}}
        words = ("run", "-l", "app=typo", "-e", "emitter:*")
        why = "no pod of the namespace shop has the labels app=typo; kubectl get pods -n shop --show-labels"
        said = self.weft(*words, "--duration=1s", status=121)
        self.assertIn(f"waiting: {why}", said)
        self.assertIn(f"nothing was recorded within --duration: {why}", said)
        self.assertEqual(self.api.traces, {})
        process = self.begin(*words)
        while why not in (line := process.stderr.readline()):
            self.assertTrue(line)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertEqual(self.api.traces, {})

    def test_run_fails_where_no_pod_was_traced(self):
        status = trace("Completed")["status"]
        status["pods"]["traced"], status["events"] = 0, {}
        self.api.made_status = status
        said = self.weft("run", "-l", "app=shop", "-e", "emitter:*", "--duration=1s", status=121)
        self.assertIn("nothing was recorded: 1 pod is not traced, NoLibrary: they began before weft", said)
        self.assertEqual(self.api.traces, {})

    def test_run_says_why_no_event_came(self):
        self.hide_streams()
        self.api.made_status = trace("Completed")["status"]
        self.api.made_status |= {"events": {}, "pods": {"matched": 1, "traced": 1}}
        words = ("run", "-l", "app=shop", "-e", "emitter:*", "--filter", "nubmer > 0")
        short = "programs have no such event or field, which takes up to 15 s to find"
        self.assertIn(short, self.weft(*words, "--duration=1s"))
        self.assertNotIn(short, self.weft(*words, "--duration=1m"))
        why = 'no event that running programs offer for it has a field "nubmer"'
        self.api.made_status["conditions"].append(
            {"type": "Receiving", "status": "False", "reason": "NotOffered", "message": why,
             "lastTransitionTime": "2026-01-02T03:04:05Z"})
        self.assertIn(f"0 events shown: NotOffered: {why}", self.weft(*words, "--duration=1s"))

    def test_run_ends_and_deletes_its_trace(self):
        self.hide_streams()
        process = self.begin("run", "-l", "app=shop", "-e", "emitter:*", "--function", "libssl.so*:SSL_*",
                             "--function-set", "malloc", "--attach", "--json")
        deadline = time.monotonic() + PATIENCE
        while not self.api.views and time.monotonic() < deadline:
            time.sleep(0.05)
        spec = self.api.traces["sales"]["spec"]
        user = spec["user"]
        self.assertEqual(spec["context"], ["vpid", "vtid"])
        self.assertEqual((user["events"], user["attach"]), ([{"name": "emitter:*"}], True))
        self.assertEqual(user["functions"], [{"name": "SSL_*", "object": "libssl.so*"}, {"set": "malloc"}])
        self.grow()
        process.send_signal(signal.SIGINT)
        out, err = self.finish(process)
        self.assertEqual(self.events(out), self.events(self.viewed(self.recorded, "--json")), err)
        self.assertEqual((self.api.traces, self.api.views), ({}, {}))
        self.assertIn("records 1 of 2 pods", err)
        self.api.forbidden = {"create"}
        self.assertIn("may not create traces.weft.dev", self.weft("run", "-l", "app=shop", "-e", "x:*", status=121))


if __name__ == "__main__":
    unittest.main()
