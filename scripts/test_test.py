#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev test that is ended by a signal leaves none of its commands running."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent
# Runs scripts/test.py with two parts whose commands start a process each, and wait. One of them gives way.
PROGRAM = """
import pathlib, sys
from scripts import test
folder = pathlib.Path(sys.argv[1])
test.LOGS = folder / "logs"
test.PATIENCE = float(sys.argv[3])

def command(name):
    script = sys.argv[2] + f"echo $$ > {folder}/{name}.new && mv {folder}/{name}.new {folder}/{name}; sleep 1000; true"
    return [["sh", "-c", script], ["touch", str(folder / "next")]]

test.parts = lambda args: ({"unit": command("unit")}, {}, {"model": command("model")})
test.build_release = lambda needed, signals: 0
sys.exit(test.main(["unit", "model"]))
"""
PATIENCE = 200  # seconds, more than anything takes: only a failure waits for it


def has_processes(group):
    """Returns whether a process of the group runs. One that has ended may wait for its parent, or for init."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, its_group = path.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False


def end(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Ended(unittest.TestCase):
    def wait_for(self, condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def end_by(self, number, at_start="", patience=PATIENCE):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        program = subprocess.Popen([sys.executable, "-B", "-c", PROGRAM, folder, at_start, str(patience)],
                                   env={**os.environ, "PYTHONPATH": str(TOP), "WEFT_BABELTRACE2": "none"},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        started = [folder / "unit", folder / "model"]
        self.wait_for(lambda: all(path.exists() for path in started), "the parts did not begin")
        groups = [int(path.read_text(encoding="ascii")) for path in started]
        self.assertTrue(all(has_processes(group) for group in groups))
        for group in groups:
            self.addCleanup(end, group)
        program.send_signal(number)
        self.assertEqual(program.wait(PATIENCE), 128 + number)
        self.wait_for(lambda: not any(has_processes(group) for group in groups), "a command was left running")
        self.assertFalse((folder / "next").exists(), "another command was begun")

    def test_by_sigterm(self):
        self.end_by(signal.SIGTERM)

    def test_by_sigint(self):
        self.end_by(signal.SIGINT)

    def test_command_that_ignores_sigint_is_killed(self):
        self.end_by(signal.SIGTERM, at_start="trap '' INT; ", patience=0.2)


if __name__ == "__main__":
    unittest.main()
