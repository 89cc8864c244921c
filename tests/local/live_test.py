#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Events on their way from pods to a person who watches them: `kubectl weft live`, as text and for babeltrace2, while
pods and processes come and go. All parts of weft are real: keeper, agent, consumers, relay with its API, kubectl-weft.
The test is the kubelet and the API server."""

import collections
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

from tests.local.node_life_test import NAMESPACE, LifeTest, control_groups
from tests.local.weft_local import BUILD, PATIENCE, free_port
from tests.vm import node

PROXY = "/api/v1/namespaces/weft/services/https:weft-relay:api/proxy"
EVENT = re.compile(r"^\[(?P<time>[\d.]+)\] (?P<rest>.*)$")


class LiveApi(node.Api):
    """Also has the Trace, TraceViews, the relay's certificate, and passes requests on to the relay's API."""

    def __init__(self):
        self.views = {}
        self.view_names = (f"view-{number}" for number in itertools.count())
        self.phase = "Recording"
        self.uid = ""
        self.relay_port = 0
        super().__init__()
        self.objects["secrets"] = {}
        self.watchers["secrets"] = []

    def trace(self):
        return {"apiVersion": "weft.dev/v1alpha1", "kind": "Trace",
                "metadata": {"name": "t", "namespace": NAMESPACE, "uid": self.uid},
                "spec": {"user": {"events": [{"name": "*"}]}},
                "status": {"phase": self.phase, "relay": "r", "folder": f"{NAMESPACE}/t/{self.uid}"}}

    def handler(self):
        api = self

        class Handler(super().handler()):
            relay = None
            disable_nagle_algorithm = True  # head and body are two writes

            def reply(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def pass_on(self):
                headers = {name: self.headers[name] for name in ("X-Weft-Token", "Range") if self.headers[name]}
                for is_last in (False, True):
                    try:
                        if self.relay is None:
                            unverified = ssl._create_unverified_context()  # pylint: disable=protected-access
                            self.relay = http.client.HTTPSConnection("127.0.0.1", api.relay_port, context=unverified)
                        self.relay.request("GET", self.path[len(PROXY):], headers=headers)
                        answer = self.relay.getresponse()
                        return self.reply(answer.status, answer.read())
                    except (OSError, http.client.HTTPException):
                        self.relay = None
                        if is_last:
                            return self.reply(503, b"the relay is away\n")
                return None

            def do_GET(self):  # pylint: disable=invalid-name
                kind, _, name = self.path.partition("?")[0].rpartition("/")
                if self.path.startswith(PROXY):
                    self.pass_on()
                elif kind.endswith("/traceviews"):
                    found = api.views.get(name)
                    self.reply(200 if found else 404, json.dumps(found or {}).encode())
                elif kind.endswith("/traces"):
                    self.reply(200, json.dumps(api.trace()).encode())
                else:
                    super().do_GET()

            def do_POST(self):  # pylint: disable=invalid-name
                made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name = next(api.view_names)
                made["metadata"] = {"name": name, "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
                api.views[name] = made
                self.reply(201, json.dumps(made).encode())

            def do_DELETE(self):  # pylint: disable=invalid-name
                api.views.pop(self.path.rpartition("/")[2], None)
                self.reply(200, b"{}")

        return Handler


@unittest.skipUnless(os.geteuid() == 0 and control_groups(), "needs root, and control groups to make")
class Live(LifeTest):
    api_class = LiveApi
    storage = ()  # options of the relay

    def setUp(self):
        super().setUp()
        self.api.uid = self.api.objects["tracesessions"][f"session-{NAMESPACE}"]["spec"]["traceUid"]
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(
            {"current-context": "c", "clusters": [{"name": "k", "cluster": {"server": self.api.address}}],
             "users": [{"name": "u", "user": {}}],
             "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": NAMESPACE}}]}))

    def start_relay(self):
        super().start_relay()
        self.addCleanup(self.end_all)  # before its log is closed
        # It logs each request, and a pipe that is full would stop it.
        threading.Thread(target=self.relay_process.stderr.read, daemon=True).start()

    def relay_options(self):
        made = pathlib.Path(self.folder)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
                        made / "relay.key", "-out", made / "relay.crt", "-subj", "/CN=relay"],
                       check=True, capture_output=True)
        data = {f"tls.{name}": subprocess.run(["base64", "-w0", made / f"relay.{name}"], check=True,
                                              capture_output=True, text=True).stdout for name in ("crt", "key")}
        self.api.put("secrets", {"metadata": {"uid": "s", "name": "weft-relay-tls", "resourceVersion": "1"}, "data": data})
        self.api.relay_port = self.api.relay_port or free_port()
        return ("--api", f"127.0.0.1:{self.api.relay_port}", "--server", self.api.address, "--namespace", "weft",
                "--plain-nodes", *self.storage)

    def kubectl(self, *words, to=None):
        """Standard output is a pipe, or the file `to`."""
        command = [str(BUILD / "bin/kubectl-weft"), *map(str, words), f"--kubeconfig={self.kubeconfig}"]
        out = (self.folder / to).open("wb") if to else subprocess.PIPE
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        self.addCleanup((process.stdout or out).close)
        self.addCleanup(process.stderr.close)
        return process

    def serve(self):
        """Returns the process, and the URL that it names."""
        process = self.kubectl("live", "t", "--serve")
        line = process.stdout.readline()
        found = re.fullmatch(rf"babeltrace2 --input-format=lttng-live (net://localhost:(\d+)/host/{NAMESPACE}/t)\n", line)
        self.assertIsNotNone(found, line or process.stderr)
        return process, found[1], int(found[2])

    def view(self, url):
        """Attaches a viewer that ends with the Trace. What it prints goes into a file."""
        out, said = ((self.folder / f"{name}-{len(self.running)}").open("w+", encoding="utf-8")
                     for name in ("shown", "said"))
        self.addCleanup(out.close)
        self.addCleanup(said.close)
        return self.attach(url, out, said), pathlib.Path(out.name), pathlib.Path(said.name)

    def attach(self, url, out, said=subprocess.DEVNULL):
        viewer = subprocess.Popen(
            ["babeltrace2", "--clock-seconds", "--no-delta", "-c", "source.ctf.lttng-live", "--params",
             f'inputs=["{url}"],session-not-found-action="end"'],
            stdin=subprocess.DEVNULL, stdout=out, stderr=said, text=True)
        self.running.append(viewer)
        return viewer

    def stored(self):
        folder = self.folder / "relay" / NAMESPACE
        return subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", folder], capture_output=True, text=True,
                              timeout=PATIENCE, check=True).stdout.splitlines()

    def assert_same(self, shown, stored, raised):
        """Compares event by event; `raised` events may have later times than they have in the stored trace."""
        shown, stored = ([EVENT.match(line).groups() for line in lines] for lines in (shown, stored))
        times = [float(time_of) for time_of, _ in shown]
        self.assertEqual(times, sorted(times), "an event is older than one that was shown before")
        self.assertEqual(collections.Counter(rest for _, rest in shown), collections.Counter(rest for _, rest in stored))
        others = collections.Counter(shown) - collections.Counter(stored)
        self.assertLessEqual(others.total(), raised)

    def assert_text(self, shown, said):
        stored = subprocess.run([BUILD / "bin/weft", "view", "--json", self.folder / "relay" / NAMESPACE],
                                capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        self.assertEqual(sorted(shown.splitlines()), sorted(stored.splitlines()))
        times = [json.loads(line)["time_ns"] for line in shown.splitlines()]
        late = sum(time_of < most for time_of, most in zip(times, itertools.accumulate(times, max)))
        told = re.search(r"(\d+) events came late", said)
        self.assertEqual(late, int(told[1]) if told else 0, said)

    def end_trace(self):
        counts = self.end(NAMESPACE, {}, user={"events": [{"name": "emitter:*"}]})
        self.api.phase = "Completed"
        return counts

    def raised(self, said):
        return sum(int(count) for count in re.findall(r"(\d+) events of new streams came after later ones", said))

    def test_babeltrace_shows_what_is_stored(self):
        first = self.pod("one")
        text = self.kubectl("live", "t", "--json", to="text")
        server, url, port = self.serve()
        self.emit(first, 500, "--threads", 2, "--pause-us", 1000)
        viewers = [self.view(url)]
        # One that attaches and never reads.
        silent = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(silent.close)
        command = struct.pack(">QIIQIII", 20, 1, 0, 0, 2, 4, 1) + struct.pack(">QII", 0, 8, 0)
        silent.sendall(command + struct.pack(">QIIQQI", 20, 3, 0, 1, 0, 2) + struct.pack(">QII", 0, 2, 0) * 1000)
        for number in range(3):
            self.emit(first, 100, "--pause-us", 2000)
            pod = self.pod(f"more-{number}")
            self.emit(pod, 300, "--threads", 2, "--pause-us", 1000)
            self.emit(pod, 50)
            time.sleep(0.5)
        viewers.append(self.view(url))
        self.kill_daemon("weft-consumer")
        self.emit(first, 200, "--pause-us", 1000)
        self.kill_relay()
        self.start_relay()
        self.emit(first, 200, "--pause-us", 1000)
        # What is stored is shown while the Trace records.
        self.wait_for(lambda: all(len(path.read_text().splitlines()) >= 2000 for _, path, _ in viewers),
                      lambda: [(len(path.read_text().splitlines()), viewer.poll(), errors.read_text()[-999:])
                               for viewer, path, errors in viewers])
        for program in self.running:
            if program.args and "emitter" in str(program.args):
                program.wait(PATIENCE)
        emitted = self.emitted()
        counts = self.end_trace()
        self.assertEqual((counts["recorded"], counts["delivered"]), (emitted, emitted), counts)
        for viewer, _, errors in viewers:
            self.assertEqual((viewer.wait(PATIENCE), errors.read_text()), (0, ""))
        _, late = text.communicate(timeout=PATIENCE)
        self.assertEqual(text.returncode, 0, late)
        self.assert_text((self.folder / "text").read_text(), late)
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=PATIENCE)
        self.assertEqual(server.returncode, 0, said)
        stored = self.stored()
        self.assertEqual(len(stored), emitted)
        for _, path, _ in viewers:
            self.assert_same(path.read_text().splitlines(), stored, self.raised(said))

    def assert_downloaded(self, folder):
        """Downloads what is stored now into a new folder, and compares it with what was emitted."""
        done = self.kubectl("download", "t", "-o", folder)
        _, said = done.communicate(timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, said)
        shown = subprocess.run([BUILD / "bin/weft", "view", folder], capture_output=True, text=True, timeout=PATIENCE,
                               check=True).stdout
        self.assertEqual(shown.count("emitter:tick"), self.emitted())

    def test_live_and_download_go_on_while_the_relays_clock_is_an_hour_off(self):
        self.kill_relay()
        self.set_relay_clock("+0")
        self.storage = ("--max-age", "30m")
        self.start_relay()
        pod = self.pod("one")
        text = self.kubectl("live", "t", "--json", to="text")

        def more_comes(name, *options):
            self.assertEqual(self.emit(pod, 150, *options).wait(PATIENCE), 0)
            self.wait_for(lambda: len((self.folder / "text").read_text().splitlines()) == self.emitted(), name)
            self.assert_downloaded(self.folder / name)
        more_comes("right")
        for clock in ("+1h", "-1h"):
            self.set_relay_clock(clock)
            more_comes(f"set{clock}", "--pause-us", 20000)  # for a while
        # The next relays know files only by the times that they have.
        self.storage = ()
        for clock in ("+1h", "-1h"):
            self.kill_relay()
            self.set_relay_clock(clock)
            self.start_relay()
            more_comes(f"started{clock}")
        self.end_trace()
        _, said = text.communicate(timeout=PATIENCE)
        self.assertEqual(text.returncode, 0, said)
        self.assert_text((self.folder / "text").read_text(), said)


if __name__ == "__main__":
    unittest.main()
