#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node and a relay that prove themselves to each other, as in a cluster: TLS, the pod's token, tickets, TraceSessions.
All processes of weft are real; the test is the kubelet and the API server (tests/vm/node.py), and the controller that
writes certificates. Whatever is restarted, replaced or away, every event is counted once."""

import base64
import os
import re
import socket
import ssl
import subprocess
import time
import unittest

from tests.cluster.with_weft import metric
from tests.local.node_life_test import NAMESPACE, RECORDS, LifeTest, control_groups
from tests.local.weft_local import BUILD, PATIENCE, free_port
from tests.vm.node import NODE, Api, order

TOKEN = "eyJ.agent"
TRACE = "00000000-0000-4000-8000-000000000001"
SHARE = 16 << 20  # bytes of the relay's storage that the Trace asks for: the least
BELIEF = 4  # seconds; for less a relay believes what the API server said of a token
REFUSED = re.compile(r'^weft_relay_refused_sessions_total\{reason="(\w+)"\} (\S+)$', re.MULTILINE)
LISTENS = re.compile(r"control \S+:(\d+) data \S+:(\d+) http \S+:(\d+)")


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


class Authority:
    """A CA, and a certificate of it for localhost."""

    def __init__(self, folder, name):
        self.name = name
        openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
        openssl(folder, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                "/CN=localhost", "-keyout", f"{name}-server.key", "-out", f"{name}-server.csr")
        (folder / "names").write_text("subjectAltName=DNS:localhost\n")
        openssl(folder, "x509", "-req", "-in", f"{name}-server.csr", "-CA", f"{name}.crt", "-CAkey", f"{name}.key",
                "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}-server.crt")
        self.certificate = (folder / f"{name}.crt").read_text()
        self.server = {f"tls.{end}": base64.b64encode((folder / f"{name}-server.{end}").read_bytes()).decode()
                       for end in ("crt", "key")}


class TrustApi(Api):
    """Has Secrets and ConfigMaps, and knows whose token TOKEN is."""

    def __init__(self):
        self.reviews = 0
        self.is_away = False  # for reviews
        super().__init__()
        for kind in ("secrets", "configmaps"):
            self.objects[kind], self.watchers[kind] = {}, []

    def trust(self, serving, *trusted):
        """The controller's work: the relay serves with a certificate of one CA, and nodes trust some."""
        authorities = "".join(authority.certificate for authority in trusted)
        self.put("configmaps", {"metadata": {"name": "weft-relay-ca", "uid": "map"}, "data": {"ca.crt": authorities}})
        self.put("secrets", {"metadata": {"name": "weft-relay-tls", "uid": "secret", "resourceVersion": serving.name},
                             "data": serving.server})

    def handler(self):
        api = self

        class Handler(super().handler()):
            def do_POST(self):  # pylint: disable=invalid-name
                self.rfile.read(int(self.headers["Content-Length"]))
                api.reviews += 1
                if api.is_away:
                    self.send_error(500)
                    return
                extra = {"authentication.kubernetes.io/node-name": [NODE]}
                self.answer({"status": {"authenticated": True, "audiences": ["weft-relay"],
                                        "user": {"username": "system:serviceaccount:weft:weft-agent", "extra": extra}}})

        return Handler


@unittest.skipUnless(os.geteuid() == 0 and control_groups(), "needs root, and control groups to make")
class Trust(LifeTest):
    api_class = TrustApi

    def setUp(self):
        self.api_port = free_port()
        self.old = None  # the first authority
        super().setUp()

    def log(self):
        """The lines of all relays."""
        return (self.folder / "relay.log").read_text().splitlines()

    def start_relay(self):
        control, data = (f"127.0.0.1:{port}" for port in self.relay)
        if self.old is None:
            self.old = Authority(self.folder, "old")
            self.api.trust(self.old, self.old)
        log = self.folder / "relay.log"
        log.touch()
        with log.open("r+") as end:
            end.seek(0, os.SEEK_END)
            before = len(self.log())
            relay = subprocess.Popen(
                [str(BUILD / "bin/weft-relay"), "--data-dir", str(self.folder / "relay"), "--control", control, "--data",
                 data, "--http", "127.0.0.1:0", "--api", f"127.0.0.1:{self.api_port}", "--server", self.api.address,
                 "--namespace", "weft"],
                stdin=subprocess.DEVNULL, stderr=end, text=True, env=self.relay_environment())
        self.running.append(relay)
        found = self.wait_for(lambda: LISTENS.search("\n".join(self.log()[before:])), self.log)
        self.wait_for(lambda: "using the certificate" in "".join(self.log()[before:]), self.log)
        *ports, self.relay_http = map(int, found.groups())
        self.relay = tuple(ports)
        self.relay_process = relay

    def start_node(self, **kernel):
        (self.folder / "token").write_text(TOKEN)
        os.environ.update(WEFT_RELAY_TOKEN_FILE=str(self.folder / "token"), WEFT_RELAY_API_PORT=str(self.api_port))
        self.addCleanup(os.environ.pop, "WEFT_RELAY_TOKEN_FILE", None)
        self.addCleanup(os.environ.pop, "WEFT_RELAY_API_PORT", None)
        super().start_node(**kernel)

    def order(self, state="Active"):
        """The session, whose relay has the name that its certificate is for."""
        made = order(NAMESPACE, self.relay, {}, state, **RECORDS)
        for member in ("control", "data"):
            made["spec"]["relay"][member] = made["spec"]["relay"][member].replace("127.0.0.1", "localhost")
        made["spec"]["traceUid"] = TRACE
        made["spec"]["record"]["storage"] = {"maxSize": f"{SHARE >> 20}Mi"}
        return made

    def end(self, namespace, kernel, **spec):
        self.api.put("tracesessions", self.order("Draining"))
        self.wait_condition(namespace, "Drained", "True")
        return self.status(namespace).get("events", {})

    def refused(self, reason):
        return dict(REFUSED.findall(self.metrics(self.relay_http))).get(reason, "0")

    def test_every_event_comes_whatever_is_restarted_replaced_or_away(self):
        pod = self.pod("one")

        def more_comes():
            self.assertEqual(self.emit(pod, 100).wait(PATIENCE), 0)
            self.wait_for(lambda: self.delivered() == self.emitted(), "the events do not come")

        more_comes()
        self.assertEqual(self.api.reviews, 1)

        # A relay that was restarted has another key: a hello is refused, and the agent gets a new ticket. Its clock is
        # wrong from now on.
        self.kill_relay()
        self.set_relay_clock("+1h")
        self.start_relay()
        more_comes()
        self.assertGreaterEqual(int(self.refused("wrong_ticket")), 1)
        # One more where a node's next request came before this one's answer.
        self.assertIn(self.api.reviews, (2, 3))

        # Without the API server's reviews, a consumer comes back by the ticket that the agent has.
        self.api.is_away = True
        self.kill_daemon("weft-consumer")
        more_comes()
        # The next agent has none, but the session goes on.
        self.kill_daemon("weft-node-agent")
        more_comes()
        time.sleep(BELIEF)
        self.kill_daemon("weft-consumer")
        self.wait_condition(NAMESPACE, "RelayAvailable", "False", "Unreachable")
        self.wait_for(lambda: "no ticket from the relay: 503" in self.condition(NAMESPACE, "RelayAvailable")[2],
                      "the node does not say why")
        self.api.is_away = False
        more_comes()

        # First nodes trust both CAs, then the relay's certificate is of the new one, then the old one goes.
        new = Authority(self.folder, "new")
        self.api.trust(self.old, new, self.old)
        self.api.trust(new, new, self.old)
        self.wait_for(lambda: any("certificate of version new" in line for line in self.log()), "no new certificate")
        more_comes()
        self.kill_daemon("weft-consumer")
        more_comes()
        self.api.trust(new, new)
        self.kill_daemon("weft-consumer")
        more_comes()
        self.assertEqual(self.refused("tls"), "0")

        # A relay that nodes do not trust gets nothing, and the node says why.
        before = len(self.log())
        self.api.trust(self.old, new)
        self.wait_for(lambda: any(line.endswith("certificate of version old") for line in self.log()[before:]),
                      "no new certificate")
        self.kill_daemon("weft-consumer")
        self.kill_daemon("weft-node-agent")
        self.wait_condition(NAMESPACE, "RelayAvailable", "False", "Unreachable")
        self.api.trust(new, new)
        more_comes()
        self.assert_books(self.emitted())

    def test_a_trace_keeps_its_newest_events_within_its_share(self):
        pod = self.pod("one")

        def removed():
            return metric(self.metrics(self.relay_http), "weft_relay_removed_events_total", NAMESPACE, "t")
        self.wait_for(lambda: self.emit(pod, 200000, "--threads", 2).wait(PATIENCE) == 0 and removed() > 0,
                      "nothing is removed")
        counts = self.end(NAMESPACE, {}, **RECORDS)
        self.assertEqual(counts["recorded"] + counts["discarded"], self.emitted())
        self.assertEqual(counts["delivered"], counts["recorded"])
        folder = self.folder / "relay" / NAMESPACE / "t" / TRACE
        stored = subprocess.run(["babeltrace2", "--no-delta", folder], capture_output=True, text=True, timeout=PATIENCE,
                                check=True).stdout.count("\n")

        def storage():
            return self.api.statuses.get(TRACE, {}).get("storage", {})
        # The relay tells of all that it removed some seconds later.
        self.wait_for(lambda: storage().get("removedEvents", 0) + stored == counts["delivered"],
                      lambda: f"{stored} of {counts['delivered']} are kept; {storage()}")
        self.assertEqual(storage()["removedEvents"], removed())
        self.assertLessEqual(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), SHARE)

    def test_a_relay_takes_nothing_without_tls(self):
        context = ssl.create_default_context(cadata=self.old.certificate)
        for port in self.relay:
            with self.subTest(port=port), socket.create_connection(("127.0.0.1", port)) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as connection:
                    self.assertIn(connection.version(), ("TLSv1.2", "TLSv1.3"))
            with socket.create_connection(("127.0.0.1", port)) as plain:
                plain.sendall(b"\x24\0\0\0" + b'{"type":"offer","versions":[1]}' + bytes(20))
                self.assertFalse(plain.recv(100).startswith(b"\x1f"))
        self.wait_for(lambda: self.refused("tls") == "2", lambda: self.metrics(self.relay_http))


if __name__ == "__main__":
    unittest.main()
