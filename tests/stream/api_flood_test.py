#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""4,000 connections to the relay's HTTPS API that say nothing, too little or nonsense, end half, or stop within a
request: the relay stays small, a session of `weft record` loses nothing, and a download is whole."""

import hashlib
import io
import json
import shutil
import socket
import ssl
import subprocess
import tarfile
import time
import types
import unittest
import urllib.request

from tests.local.live_test import LiveApi
from tests.local.weft_local import PATIENCE, free_port
from tests.stream import flood_test

SECRET = "s" * 32
UID = "00000000-0000-4000-8000-000000000001"
# TLS: the head of a long record, and a record of another kind; HTTP without TLS.
STARTS = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), b"\x17\x03\x03\x40\x00", b"GET / HTTP/1.1\r\nX: ")
HALF_ENDED, IN_REQUEST = 200, 50


class ApiFlood(flood_test.FloodedRelay):
    def start_relay(self):
        self.api = LiveApi()
        self.addCleanup(self.api.server.shutdown)
        self.give_certificate()
        moment = "%Y-%m-%dT%H:%M:%SZ"
        self.api.views["v"] = {
            "metadata": {"name": "v", "creationTimestamp": time.strftime(moment, time.gmtime())},
            "spec": {"trace": "t", "tokenSHA256": hashlib.sha256(SECRET.encode()).hexdigest(),
                     "expires": time.strftime(moment, time.gmtime(time.time() + 3000))}}
        self.api_port = free_port()
        self.options = ["--api", f"127.0.0.1:{self.api_port}", "--server", self.api.address, "--namespace", "weft",
                        "--plain-nodes"]
        super().start_relay()
        self.read_log()

    def give_certificate(self):
        names = [self.folder / "relay.key", self.folder / "relay.crt"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", names[0],
                        "-out", names[1], "-subj", "/CN=relay"], check=True, capture_output=True)
        key, chain = (subprocess.run(["base64", "-w0", name], check=True, capture_output=True, text=True).stdout
                      for name in names)
        self.api.put("secrets", {"metadata": {"uid": "s", "name": "weft-relay-tls", "resourceVersion": "1"},
                                 "data": {"tls.key": key, "tls.crt": chain}})

    def open(self, target, headers=types.MappingProxyType({})):
        unverified = ssl._create_unverified_context()  # pylint: disable=protected-access
        request = urllib.request.Request(f"https://127.0.0.1:{self.api_port}/v1/namespaces/local/traces{target}",
                                         headers={"X-Weft-Token": f"local.v.{SECRET}", **headers})
        return urllib.request.urlopen(request, timeout=PATIENCE, context=unverified)

    def ask(self, target):
        with self.open(target) as answer:
            return answer.read()

    def answers(self):
        try:
            return self.ask("")
        except OSError:
            return None

    def connect(self):
        one = socket.socket()
        self.addCleanup(one.close)
        one.settimeout(PATIENCE)
        one.bind((flood_test.FLOOD_ADDRESS, 0))
        one.connect(("127.0.0.1", self.api_port))
        return one

    def hold_more(self):
        """Connections of kinds that a flood of bytes does not have."""
        for _ in range(HALF_ENDED):
            self.connect().shutdown(socket.SHUT_WR)
        unverified = ssl._create_unverified_context()  # pylint: disable=protected-access
        for _ in range(IN_REQUEST):
            # The relay may close it for another one at any moment.
            try:
                inside = unverified.wrap_socket(self.connect())
                self.addCleanup(inside.close)
                inside.sendall(b"GET /v1/namespaces/local/traces HTTP/1.1\r\nX-Weft-Token: ")
            except OSError:
                pass

    def test_4000_slow_connections_to_the_api_stop_no_session_and_no_download(self):
        self.raise_file_limit()
        self.wait_for(self.answers)
        self.record("-e", "emitter:*", "--name", "done", program=self.emitter("--events", 5000, "--threads", 2))
        stored = self.folder / "relay" / "local"
        # Where a Trace of a cluster is, which is what the API gives out.
        shutil.copytree(stored / "done", stored / "t" / UID)
        hold = self.folder / "release"
        recording = self.start("-e", "emitter:*", "--name", "before", program=self.emitter(
            "--events", 20000, "--threads", 2, "--pause-us", 500, "--hold", hold))
        self.wait_for(lambda: list((stored / "before").glob("**/user_*")))
        flood = flood_test.Flood([self.api_port], flood_test.CONNECTIONS, STARTS)
        self.addCleanup(flood.end)
        self.hold_more()
        # So many that each place was taken many times.
        self.wait_for(lambda: flood.ended[self.api_port] >= flood_test.CONNECTIONS)
        self.assertEqual([trace["name"] for trace in json.loads(self.ask(""))["traces"]], ["t"])
        with tarfile.open(fileobj=io.BytesIO(self.ask(f"/t/{UID}/archive.tar"))) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        there = {str(path.relative_to(stored)): path.read_bytes()
                 for path in (stored / "t" / UID).rglob("*") if path.is_file() and path.stat().st_size}
        self.assertEqual(sorted(files), sorted(there))
        self.assertTrue(files == there, "a file is not what is stored")
        with self.open(f"/t/{UID}/archive.tar") as whole:
            with self.open(f"/t/{UID}/archive.tar", {"Range": "bytes=700-", "If-Range": whole.headers["ETag"]}) as rest:
                self.assertTrue((rest.status, rest.read()) == (206, whole.read()[700:]))
        self.assertEqual(self.get("/healthz"), "ok\n")
        hold.touch()
        self.finish(recording)
        self.assert_exact_of("before", 40000)
        self.assertLess(self.memory_mb(), flood_test.MOST_MB)
        self.assertEqual(flood.refused, 0)
        self.assertGreater(self.metric("weft_relay_api_refused_connections_total", reason="limit"), 0)


if __name__ == "__main__":
    unittest.main()
