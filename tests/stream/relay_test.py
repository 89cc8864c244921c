# SPDX-License-Identifier: Apache-2.0
"""Tests `weft record --relay`: the relay stores exactly the programs' events, whichever process
dies."""

import collections
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from tests.local.weft_local import BUILD, PATIENCE, TICK, LocalTest, free_port

RELAY = BUILD / "bin" / "weft-relay"
LISTENS = re.compile(r"control (\S+):(\d+) data \S+:(\d+) http \S+:(\d+)")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


class RelayTest(LocalTest):
    """A test with a relay whose folder is `relay`; it comes back on the same ports."""

    def setUp(self):
        super().setUp()
        (self.folder / "relay").mkdir()
        self.ports = tuple(free_port() for _ in range(3))  # it comes back on them
        self.relay = None
        self.options = []
        self.start_relay()

    def start_relay(self):
        control, data, http = (f"127.0.0.1:{port}" for port in self.ports)
        self.relay = subprocess.Popen(
            [str(RELAY), "--data-dir", str(self.folder / "relay"), "--control", control,
             "--data", data, "--http", http, *self.options],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.running.append(self.relay)
        self.addCleanup(self.relay.stderr.close)
        line = self.relay.stderr.readline()
        found = LISTENS.search(line)
        self.assertIsNotNone(found, line)
        self.ports = tuple(int(port) for port in found.groups()[1:])

    def kill_relay(self):
        self.relay.kill()
        self.relay.wait()

    def command(self, *options, program=None, output="trace"):
        command = super().command(*options, program=program)
        at = command.index("-o")
        command[at:at + 2] = ["--relay", "127.0.0.1:%d:%d" % self.ports[:2]]
        return command

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}{path}", timeout=PATIENCE) as r:
            return r.read().decode()

    def metric(self, name, **labels):
        """Returns the sum of a metric over the samples with these labels."""
        total = 0.0
        for line in self.get("/metrics").splitlines():
            sample = SAMPLE.match(line)
            if not sample or sample.group(1) != name:
                continue
            has = dict(LABEL.findall(sample.group(2) or ""))
            if all(has.get(label) == value for label, value in labels.items()):
                total += float(sample.group(3))
        return total

    def assert_exact(self, emitted):
        """Checks that the relay's CTF has all emitted events, except those that were counted as discarded."""
        counts = self.counts()
        self.assertEqual(counts["emitted"], emitted, counts)
        self.assertEqual(sum(counts["lost"].values()), 0, counts)
        self.assertEqual(counts["delivered"] + sum(counts["discarded"].values()), emitted, counts)
        lines, _ = self.babeltrace("relay")
        self.assertEqual(len(lines), counts["delivered"])
        self.assert_each_once(lines)
        return counts


class Counts(RelayTest):
    def test_what_is_emitted_is_stored_and_counted(self):
        self.record("-e", "emitter:*", "--name", "one",
                    program=self.emitter("--events", 20000, "--threads", 4, "--children", 3,
                                         "--texts", 10))
        emitted = 4 * (4 * 20000 + 10)
        counts = self.assert_exact(emitted)
        found = list((self.folder / "relay" / "local" / "one").glob("*/local/*/ust/uid/*/64-bit"))
        self.assertEqual(len(found), 1, found)
        trace = {"namespace": "local", "trace": "one"}
        self.assertEqual(self.metric("weft_events_delivered_total", **trace), counts["delivered"])
        self.assertEqual(self.metric("weft_relay_reported_discarded_total", **trace),
                         sum(counts["discarded"].values()))
        self.assertEqual(self.metric("weft_relay_reported_lost_total"), 0)
        self.assertEqual(self.metric("weft_relay_streams_total", **trace), counts["streams"])
        self.assertEqual(self.metric("weft_relay_packets_total", **trace), counts["packets"])
        self.assertEqual(self.metric("weft_relay_bytes_total", **trace), counts["bytes"])
        self.assertEqual(self.get("/healthz"), "ok\n")
        with self.assertRaises(urllib.error.HTTPError):
            self.get("/nothing")

    def test_large_events(self):
        sizes = [1900000, 70000, 1000000, 1966080 - 24, 1966080 - 23]
        self.record("-e", "large:text", "--name", "large", "--subbuf-size", "16Mi",
                    program=[BUILD / "tests" / "local" / "local_large", *map(str, sizes)])
        self.assertEqual(self.counts()["discarded"], {"too_large": 1})
        trace = next((self.folder / "relay" / "local" / "large").glob("*/local/*/ust/uid/*/64-bit"))
        shown, _ = self.run_view(trace)
        self.assertEqual([len(line.split('words = "')[1].split('"')[0]) for line in shown.splitlines()],
                         sizes[:-1])

    def test_discarded_events_are_counted_at_the_relay(self):
        self.record("-e", "emitter:*", "--name", "small", "--subbuf-size", "4Ki", "--subbufs", 2,
                    program=self.emitter("--events", 200000, "--threads", 2))
        counts = self.assert_exact(400000)
        discarded = sum(counts["discarded"].values())
        self.assertGreater(discarded, 0)
        self.assertEqual(self.metric("weft_relay_reported_discarded_total", trace="small"), discarded)
        self.assertEqual(self.metric("weft_events_delivered_total", trace="small"),
                         counts["delivered"])

    def test_several_traces_and_recordings(self):
        (self.folder / "traces.yaml").write_text("""
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: ticks}
spec:
  user: {events: [{name: "emitter:tick"}]}
---
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: texts}
spec:
  user: {events: [{name: "emitter:text"}]}
""")
        for _ in range(2):
            self.record("-f", self.folder / "traces.yaml",
                        program=self.emitter("--events", 100, "--texts", 20))
        self.assertEqual(len(self.babeltrace("relay/local/ticks")[0]), 200)
        self.assertEqual(len(self.babeltrace("relay/local/texts")[0]), 40)

    def test_ctf_2(self):
        self.record("-e", "emitter:*", "--ctf", "2", program=self.emitter("--events", 100))
        trace = next((self.folder / "relay").glob("**/metadata")).parent
        shown = subprocess.run([BUILD / "bin" / "weft", "view", trace], capture_output=True,
                               text=True, timeout=PATIENCE, check=True)
        self.assertEqual(len(shown.stdout.splitlines()), 100)


class Strangers(RelayTest):
    """Peers that are not nodes are refused and disturb no other connection."""

    def say(self, port, data):
        """Returns the relay's answer before it ends the connection."""
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
            s.sendall(data)
            answer = b""
            try:
                while part := s.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass
            return answer

    @staticmethod
    def message(**members):
        text = json.dumps(members).encode()
        return struct.pack("<I", len(text)) + text

    def test_bytes_that_are_no_message(self):
        rand = random.Random(1)
        control, data, http = self.ports
        for port in (control, data, http):
            for size in (100, 5000):
                self.say(port, rand.randbytes(size))
        offer = self.message(type="offer", versions=[2])
        hello = {"type": "hello", "node": "n", "namespace": "ns", "trace": "t", "trace_uid": "",
                 "ticket": ""}
        self.assertIn(b"is older than", self.say(control, self.message(type="offer", versions=[9])))
        self.assertIn(b"refusal", self.say(control, self.message(**hello)))
        opened = {"type": "open-trace", "trace": 1, "pod": "p", "pod_uid": "", "container": "c",
                  "uuid": "00000000-0000-4000-8000-000000000000", "path": "../..", "metadata": 0}
        self.assertIn(b"not a name",
                      self.say(control, offer + self.message(**hello) + self.message(**opened)))
        self.assertEqual(list((self.folder / "relay").iterdir()), [])
        self.assertGreaterEqual(self.metric("weft_relay_refused_sessions_total"), 4)
        self.record("-e", "emitter:*", program=self.emitter("--events", 1000))
        self.assert_exact(1000)
        self.wait_for(lambda: self.metric("weft_relay_sessions") == 0)


class Deaths(RelayTest):
    PROGRAM = ("--events", 1500, "--threads", 4, "--children", 3, "--pause-us", 200)
    EMITTED = 4 * 4 * 1500

    def record_and(self, *actions, rounds=3):
        # The program stays until the last action is over: a relay that comes back after a recording's end counts
        # nothing of it.
        hold = self.folder / "release"
        weft = self.start("-e", "emitter:*", program=self.emitter(*self.PROGRAM, "--hold", hold))
        self.wait_for(lambda: list((self.folder / "relay").glob("**/user_*")))
        for _ in range(rounds):
            for action in actions:
                time.sleep(0.05)
                action(weft)
        hold.touch()
        self.finish(weft)
        counts = self.assert_exact(self.EMITTED)
        self.assertEqual(self.metric("weft_relay_packets_lost_total"), 0)
        self.assertEqual(self.metric("weft_events_delivered_total"), counts["delivered"])

    def restart_relay(self, _=None):
        self.kill_relay()
        time.sleep(0.1)
        self.start_relay()

    def kill_if_it_runs(self, name):
        def action(weft):
            if weft.poll() is None:
                self.kill(weft, name)
        return action

    def test_relay(self):
        self.record_and(self.restart_relay)

    def test_consumer(self):
        self.record_and(self.kill_if_it_runs("weft-consumer"))

    def test_agent(self):
        self.record_and(self.kill_if_it_runs("weft-agent"))

    def test_all_of_them(self):
        self.record_and(self.restart_relay, self.kill_if_it_runs("weft-consumer"),
                        self.kill_if_it_runs("weft-agent"), rounds=2)

    def test_consumer_while_the_relay_is_away(self):
        def action(weft):
            self.kill_relay()
            self.kill_if_it_runs("weft-consumer")(weft)
            time.sleep(0.1)
            self.start_relay()
        self.record_and(action, rounds=2)

    def test_program_ends_while_the_relay_is_away(self):
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 10000, "--threads", 2,
                                                                  "--pause-us", 100))
        self.wait_for(lambda: list((self.folder / "relay").glob("**/user_*")))
        self.kill_relay()
        self.wait_for(self.report.exists)
        time.sleep(0.3)
        self.assertIsNone(weft.poll())
        self.start_relay()
        self.finish(weft)
        self.assert_exact(20000)

    def test_relay_that_is_told_to_end_leaves_all_on_the_disk(self):
        self.record("-e", "emitter:*", program=self.emitter("--events", 1000))
        self.relay.send_signal(signal.SIGTERM)
        self.assertEqual(self.relay.wait(timeout=PATIENCE), 0)
        self.assertEqual(len(self.babeltrace("relay")[0]), 1000)

    def test_relay_that_answers_late(self):
        self.relay.send_signal(signal.SIGSTOP)  # the kernel still accepts connections
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 1000))
        time.sleep(7)  # longer than a recording waits for a relay that cannot be reached
        self.assertIsNone(weft.poll())
        self.relay.send_signal(signal.SIGCONT)
        self.finish(weft)
        self.assert_exact(1000)

    def test_relay_that_is_not_there(self):
        self.kill_relay()
        _, err = self.record("-e", "emitter:*", program=self.emitter("--events", 10), status=122)
        self.assertIn("relay 127.0.0.1", err)
        self.assertIn("refused", err)


class Chunks(RelayTest):
    """The relay writes streams into chunks, and removes the oldest ones."""

    OPTIONS = ("--chunk-size", "256Ki")
    LARGE = ("--subbuf-size", "8Mi")
    SLOWLY = ("--pause-us", 20)  # a consumer that keeps up makes small packets, which fit into a small share

    def restart_with(self, *options):
        self.kill_relay()
        self.options = [*self.OPTIONS, *options]
        self.start_relay()

    def chunks(self):
        """Returns stream -> [(first packet, events before it)], by the names of its files."""
        streams = collections.defaultdict(list)
        for path in (self.folder / "relay").glob("**/user_*"):
            stream, *numbers = path.name.split(".")
            streams[path.parent / stream].append(tuple(map(int, numbers or ("0", "0"))))
        for chunks in streams.values():
            chunks.sort()
        return streams

    def removed(self):
        """Returns the events that were removed, whichever relay did it, as the oldest chunks say."""
        return sum(chunks[0][1] for chunks in self.chunks().values())

    def test_a_stream_is_read_across_its_chunks(self):
        self.restart_with()
        self.record("-e", "emitter:*", *self.LARGE,
                    program=self.emitter("--events", 60000, "--threads", 2, *self.SLOWLY))
        self.assert_exact(120000)
        self.assertGreater(max(map(len, self.chunks().values())), 2, self.chunks())

    def test_the_oldest_events_go_and_are_counted(self):
        self.restart_with("--trace-quota", "1Mi")
        # On one CPU, so that there is one stream: the newest chunk of each stream stays, also of one that
        # the program left at its start.
        on_one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        self.record("-e", "emitter:*", "--name", "small", *self.LARGE,
                    program=[*on_one_cpu, *self.emitter("--events", 100000, *self.SLOWLY)])
        delivered = self.counts()["delivered"]
        lines, _ = self.babeltrace("relay")
        removed = self.metric("weft_relay_removed_events_total", trace="small", reason="trace_size")
        self.assertGreater(removed, 0)
        self.assertEqual(len(lines) + removed, delivered)
        self.assertEqual(self.removed(), removed)
        kept = [int(match.group(3)) for match in map(TICK.search, lines) if match]
        self.assertEqual(self.counts()["discarded"], {})
        self.assertGreater(kept[0], 0)
        self.assertEqual(kept[-1], 99999)
        stored = sum(path.stat().st_size for path in (self.folder / "relay").glob("**/*") if path.is_file())
        self.assertLessEqual(stored, 1 << 20)
        self.wait_for(lambda: self.metric("weft_relay_stored_bytes", trace="small") == stored)

    def test_packets_larger_than_a_quota_end_the_recording_and_are_counted(self):
        self.restart_with("--trace-quota", "256Ki")
        _, err = self.record("-e", "large:text", "--name", "large", "--subbuf-size", "16Mi", status=122,
                             program=[BUILD / "tests" / "local" / "local_large", "1000", "1000000"])
        self.assertIn("larger than the whole quota of 256Ki", err)
        counts = self.counts()
        self.assertEqual(counts["emitted"], 2)
        self.assertEqual(counts["discarded"], {})
        self.assertEqual(counts["lost"], {"relay/refused": 2 - counts["delivered"]})
        self.assertLess(counts["delivered"], 2)

    def test_a_relay_goes_on_with_the_chunks_of_the_one_before(self):
        self.restart_with("--trace-quota", "1Mi")
        hold = self.folder / "release"
        weft = self.start("-e", "emitter:*", *self.LARGE,
                          program=self.emitter("--events", 60000, "--threads", 2, "--pause-us", 60, "--hold", hold))
        self.wait_for(lambda: self.removed() > 0)
        for _ in range(3):
            self.restart_with("--trace-quota", "1Mi")
            self.wait_for(lambda: self.metric("weft_relay_streams_total") > 0)
        hold.touch()
        self.finish(weft)
        counts = self.counts()
        lines, _ = self.babeltrace("relay")
        self.assertEqual(len(lines) + self.removed(), counts["delivered"])
        self.assert_each_once(lines)

    def test_old_events_go(self):
        self.restart_with("--max-age", "1s")
        self.record("-e", "emitter:*", program=self.emitter("--events", 1000))
        self.wait_for(lambda: self.metric("weft_relay_removed_events_total", reason="age") == 1000)
        self.assertEqual(self.babeltrace("relay")[0], [])

    def test_wrong_limits_are_refused(self):
        for options, what in ((("--trace-quota", "1Ki"), "less than one chunk"), (("--min-free", "-1"), "not a size")):
            done = subprocess.run([RELAY, "--data-dir", self.folder / "relay", *options], capture_output=True,
                                  text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"^weft-relay: {options[0]} '{options[1]}' .*{what}.*\n$")


if __name__ == "__main__":
    unittest.main()
