#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""4,000 connections that say nothing, too little or nonsense, at the three ports of a relay: it stays small, a session
of `weft record` goes on and loses nothing, and connections that say nothing end."""

import errno
import os
import pathlib
import re
import resource
import socket
import struct
import threading
import time
import unittest
import unittest.mock

from tests.local.weft_local import EMITTER
from tests.stream import relay_test

CONNECTIONS = 4000
# Nodes and scrapers have other addresses than a flood has. When connections are too many, the relay ends those of the
# address that has most of them.
FLOOD_ADDRESS = "127.0.0.2"
# The relay's limit in the chart is 1 GiB; a buffer for each control connection is most of what this test sees.
MOST_MB = 400


# What could become a message at the ports for control, data and scrapes.
STARTS = (struct.pack("<I", 1 << 20) + b'{"', b"weft", b"GET /metrics HTTP/1.1\r\nX: ")


class Flood:
    """Connections to the ports, in turn. Half of them are silent; the others send a byte each second of something that
    could become a message."""

    def __init__(self, ports, count, starts=STARTS):
        self.ports = ports
        self.starts = starts
        self.sockets = []
        self.ended = dict.fromkeys(ports, 0)  # by the relay
        self.refused = 0  # could not connect at all
        self.stopping = threading.Event()
        for number in range(count):
            self.sockets.append((number, self.connect(number)))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self, number):
        one = socket.socket()
        one.bind((FLOOD_ADDRESS, 0))
        one.connect(("127.0.0.1", self.ports[number % len(self.ports)]))
        one.setblocking(False)
        return one

    def run(self):
        """Keeps all of them open: one that the relay ends comes back."""
        while not self.stopping.wait(1):
            for at, (number, one) in enumerate(self.sockets):
                if not self.is_open(number, one):
                    one.close()
                    self.ended[self.ports[number % len(self.ports)]] += 1
                    try:
                        self.sockets[at] = (number, self.connect(number))
                    except OSError:
                        self.refused += 1

    def is_open(self, number, one):
        try:
            if number % 2:
                text = self.starts[number % len(self.starts)]
                one.send(text[int(time.monotonic()) % len(text):][:1])
            return one.recv(1) != b""
        except OSError as error:
            return error.errno == errno.EAGAIN

    def end(self):
        self.stopping.set()
        self.thread.join()
        for _, one in self.sockets:
            one.close()


class FloodedRelay(relay_test.RelayTest):
    def setUp(self):
        # By default AddressSanitizer holds back 256 MB of freed memory, which would be most of what the relay has.
        before = os.environ.get("ASAN_OPTIONS", "")
        with unittest.mock.patch.dict(os.environ, ASAN_OPTIONS=f"{before}:quarantine_size_mb=16"):
            super().setUp()

    def memory_mb(self):
        """The most that the relay has had."""
        text = pathlib.Path(f"/proc/{self.relay.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"^VmHWM:\s+(\d+)", text, re.MULTILINE).group(1)) / 1024

    def raise_file_limit(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        if before[1] < CONNECTIONS + 500:
            self.skipTest(f"the limit of open files is {before[1]}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)

    def read_log(self):
        """The relay logs each refusal, and would wait for a reader."""
        threading.Thread(target=self.relay.stderr.read, daemon=True).start()
        self.addCleanup(self.kill_relay)

    def assert_exact_of(self, name, emitted):
        self.assertEqual(self.metric("weft_events_delivered_total", trace=name), emitted)
        self.assertEqual(len(self.babeltrace(f"relay/local/{name}")[0]), emitted)


class FloodTest(FloodedRelay):
    def test_4000_slow_connections_stop_no_session(self):
        self.raise_file_limit()
        self.read_log()
        hold = self.folder / "release"
        # A session that is there before the flood, and goes on through it.
        recording = self.start("-e", "emitter:*", "--name", "before", program=self.emitter(
            "--events", 20000, "--threads", 2, "--pause-us", 500, "--hold", hold))
        self.wait_for(lambda: list((self.folder / "relay").glob("**/user_*")))
        flood = Flood(self.ports, CONNECTIONS)
        self.addCleanup(flood.end)
        # Silent connections end, at each port.
        self.wait_for(lambda: min(flood.ended.values()) >= CONNECTIONS // len(self.ports))
        # A new session begins, and ends, within the flood; so do scrapes.
        other = self.folder / "other-report"
        new = self.record("-e", "emitter:*", "--name", "within", program=[
            EMITTER, "--report", other, "--events", 1000])
        self.assertEqual(self.get("/healthz"), "ok\n", new)
        self.assertEqual(self.metric("weft_events_delivered_total", trace="within"), 1000)
        hold.touch()
        self.finish(recording)
        self.assert_exact_of("before", 40000)
        self.assertLess(self.memory_mb(), MOST_MB)
        self.assertEqual(flood.refused, 0)


if __name__ == "__main__":
    unittest.main()
