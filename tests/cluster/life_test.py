#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That a cluster which was ended at a bad moment leaves nothing, and another one starts after it."""

import os
import signal
import subprocess
import time
import unittest

from tests.cluster.weft_cluster import PATIENCE, TOP, dev


def start(*words):
    """./dev in the background, in a process group of its own."""
    return subprocess.Popen([str(TOP / "dev"), *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)


class Life(unittest.TestCase):

    def setUp(self):
        dev("cluster", "down")
        self.addCleanup(dev, "cluster", "down")

    def start_and_kill(self, when):
        """Kills `up` after the line that says so; what it started goes on without it."""
        process = start("cluster", "up")
        said = []
        with process.stdout:
            for line in process.stdout:
                said.append(line)
                if when in line:
                    os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL, "".join(said))

    def test_killed_half_way(self):
        for when in ("certificates", "daemons started", "API server ready"):
            with self.subTest(when):
                self.start_and_kill(when)
                self.assertIn("nothing is left behind", dev("cluster", "down").stdout)
                dev("cluster", "check")

    def test_up_after_a_killed_one_and_down_with_a_client(self):
        self.start_and_kill("API server ready")
        dev("cluster", "up")
        client = start("cluster", "run", "sleep", "100000")
        self.addCleanup(client.stdout.close)
        deadline = time.monotonic() + PATIENCE
        while not os.readlink(f"/proc/{client.pid}/exe").endswith("/sleep"):
            self.assertLess(time.monotonic(), deadline, "the client does not start")
            time.sleep(0.1)
        self.assertIn("nothing is left behind", dev("cluster", "down").stdout)
        self.assertEqual(client.wait(PATIENCE), -signal.SIGKILL)

    def test_a_killed_daemon_comes_back(self):
        dev("cluster", "up")
        record = TOP / "build/cluster/node1/pid/kubelet"
        pid = int(record.read_text())
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while record.read_text() in ("", f"{pid}\n"):
            self.assertLess(time.monotonic(), deadline, "the kubelet is not started again")
            time.sleep(0.1)
        # It answers: logs come from it.
        while dev("cluster", "kubectl", "-n", "kube-system", "logs", "deployment/coredns",
                  check=False).returncode != 0:
            self.assertLess(time.monotonic(), deadline, "the kubelet does not answer")
        self.assertIn("kubelet ended with status -9", dev("cluster", "status").stdout)

    def test_nothing_runs_after_down(self):
        self.assertEqual(dev("cluster", "status", check=False).stdout, "cluster: down\n")
        self.assertIn("./dev cluster up", dev("cluster", "kubectl", "get", "nodes", check=False).stderr)


if __name__ == "__main__":
    unittest.main()
