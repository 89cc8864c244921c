# SPDX-License-Identifier: Apache-2.0
"""Tests ring sets that were not announced, and programs that started before weft: their events are
recorded exactly. Needs root: the kernel lets only root open another process's mappings."""

import json
import os
import signal
import subprocess
import sys
import unittest

from tests.local.weft_local import BUILD, WEFT, LocalTest

HIDDEN = BUILD / "tests" / "local" / "local_hidden"
EVENTS = 700
# Maps all kinds of things that are called like weft's memory, until `release` is there.
LIAR = '''
import ctypes, fcntl, mmap, os, random, sys, time
libc, kept = ctypes.CDLL(None), []
AREA = 4096 + 4 * 16384 + 4 * 1024 * 1024
for i in range(400):
    fd = os.memfd_create(("weft-ring", "weft-ctl")[i % 2], os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, AREA if i % 3 else random.choice((4096, 1 << 20, 1 << 40)))
    os.pwrite(fd, (b"WRNG", b"WCTL")[i % 2] + bytes([1, 0, 0, 0, 0x98, 0, 0, 0]), 0)
    os.pwrite(fd, os.urandom(4096), 16)
    if i % 5:
        fcntl.fcntl(fd, 1033, i % 8)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap(None, ctypes.c_size_t(AREA if i % 2 else 4096), 3, 1, fd, ctypes.c_long(0))
    os.close(fd)
open(sys.argv[1] + "/lying", "w").close()
while os.path.isdir(sys.argv[1]) and not os.path.exists(sys.argv[1] + "/release"):
    time.sleep(0.01)
'''


class FoundTest(LocalTest):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for /proc/PID/map_files")
        super().setUp()
        # Runs last: releases the programs that wait.
        self.addCleanup(self.touch, "release")

    def hidden(self, *how, events=EVENTS):
        return [HIDDEN, self.folder, events, *how]

    def touch(self, name):
        if self.folder.exists():
            (self.folder / name).touch()

    def reports(self, name="report"):
        path = self.folder / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def recorded(self):
        """Returns how many events the recording into this test's folder has recorded so far."""
        shown = subprocess.run([WEFT, "status", "--json"], capture_output=True, text=True,
                               check=True).stdout
        for session in json.loads(shown):
            if session["output"] == str(self.folder / "trace"):
                return sum(trace["recorded"] for trace in session["traces"])
        return 0


class Unannounced(FoundTest):
    def while_it_lives(self, *how):
        weft = self.start("-e", "emitter:*", program=self.hidden(*how))
        self.wait_for(lambda: self.recorded() == EVENTS, "its events were not found")
        self.touch("release")
        self.finish(weft)
        self.assert_complete(EVENTS)

    def when_the_session_ends(self, *how):
        self.record("-e", "emitter:*", program=self.hidden(*how, "leave"))
        self.assert_complete(EVENTS)

    def test_chroot(self):
        self.while_it_lives("chroot")

    def test_chroot_last_look(self):
        self.when_the_session_ends("chroot")

    def test_socket_denied(self):
        self.while_it_lives("no-socket")

    def test_socket_denied_last_look(self):
        self.when_the_session_ends("no-socket")

    def test_filter_before_exec(self):
        self.while_it_lives("filtered")

    def test_found_once_across_deaths_of_the_agent(self):
        weft = self.start("-e", "emitter:*", program=self.hidden("chroot"))
        self.wait_for(lambda: self.recorded() == EVENTS)
        for _ in range(3):
            self.kill(weft, "weft-agent")
            self.kill(weft, "weft-consumer")
        self.wait_for(lambda: self.recorded() == EVENTS)
        self.touch("release")
        self.finish(weft)
        self.assert_complete(EVENTS)

    def test_announced_ones_are_not_taken_twice(self):
        self.touch("go0")
        weft = self.start("-e", "emitter:*", program=self.hidden("rounds=2"))
        self.wait_for(lambda: self.recorded() == EVENTS)
        self.kill(weft, "weft-agent")
        self.touch("go1")
        self.wait_for(lambda: self.recorded() == 2 * EVENTS)
        self.touch("release")
        self.finish(weft)
        self.assert_complete(2 * EVENTS, times=2)


    def test_beside_a_process_with_forged_memory(self):
        liar = self.folder / "liar.py"
        liar.write_text(LIAR)
        script = (f"{sys.executable} {liar} {self.folder} & "
                  f"while [ ! -e {self.folder}/lying ]; do sleep 0.01; done; exec \"$@\"")
        weft = self.start("-e", "emitter:*",
                          program=["sh", "-c", script, "sh", *self.hidden("chroot")])
        self.wait_for(lambda: self.recorded() == EVENTS, "its events were not found")
        self.touch("release")
        self.finish(weft)
        self.assert_complete(EVENTS)
        self.assertEqual(self.summary()["recoveries"], 0)


class Attached(FoundTest):
    def setUp(self):
        super().setUp()
        self.before = os.environ.copy() | {"LD_PRELOAD": str(BUILD / "lib" / "libweft.so"),
                                           "WEFT_DIR": str(self.folder / "nowhere")}

    def start_before(self, *how, processes=1):
        ready = self.reports("ready") + processes
        process = subprocess.Popen([str(word) for word in self.hidden(*how)], env=self.before)
        self.running.append(process)
        self.wait_for(lambda: self.reports("ready") == ready)
        return process

    def attach(self, *processes, output="trace"):
        command = [str(WEFT), "record", "-e", "emitter:*", "-o", str(self.folder / output),
                   "--summary", str(self.folder / "summary.json")]
        for process in processes:
            command += ["--pid", str(process.pid)]
        weft = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.running.append(weft)
        return weft

    def wait_until_recording(self, weft, output="trace"):
        def ready():
            shown = subprocess.run([WEFT, "status"], capture_output=True, text=True, check=True)
            return any(": recording," in line and line.endswith("/" + output) and
                       str(self.folder) in line for line in shown.stdout.splitlines())
        self.wait_for(lambda: ready() or weft.poll() is not None)
        self.assertIsNone(weft.poll(), weft.stderr.read() if weft.poll() is not None else "")

    def stop(self, weft):
        weft.send_signal(signal.SIGINT)
        return self.finish(weft)

    def one_round(self, reports, *how):
        program = self.start_before("rounds=1", *how, processes=reports)
        weft = self.attach(program)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.wait_for(lambda: self.reports() == reports)
        self.stop(weft)
        self.assert_complete(reports * EVENTS)

    def test_program_that_is_older(self):
        self.one_round(1)

    def test_child_that_is_older(self):
        self.one_round(2, "fork")

    def test_under_a_filter(self):
        self.one_round(1, "filtered")

    def test_in_a_chroot(self):
        self.one_round(1, "chroot")

    def test_child_that_executed(self):
        self.one_round(2, "exec")

    def test_recorded_by_one_after_the_other(self):
        program = self.start_before("rounds=3")
        for i in range(3):
            weft = self.attach(program, output=f"trace{i}")
            self.wait_until_recording(weft, f"trace{i}")
            self.touch(f"go{i}")
            self.wait_for(lambda: self.reports() == i + 1)
            self.stop(weft)
            self.assert_complete(EVENTS, output=f"trace{i}")

    def test_two_programs_at_once(self):
        programs = [self.start_before("rounds=1") for _ in range(2)]
        weft = self.attach(*programs)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.wait_for(lambda: self.reports() == 2)
        self.stop(weft)
        self.assert_complete(2 * EVENTS)

    def test_ends_with_the_program(self):
        program = self.start_before("rounds=1")
        weft = self.attach(program)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.wait_for(lambda: self.recorded() == EVENTS)
        self.touch("release")
        self.finish(weft)
        self.assert_complete(EVENTS)

    def test_death_of_the_agent(self):
        program = self.start_before("rounds=2")
        weft = self.attach(program)
        self.wait_until_recording(weft)
        self.kill(weft, "weft-agent")
        self.touch("go0")
        self.wait_for(lambda: self.recorded() == EVENTS)
        self.kill(weft, "weft-agent")
        self.touch("go1")
        self.wait_for(lambda: self.reports() == 2)
        self.stop(weft)
        self.assert_complete(2 * EVENTS, times=2)

    def test_one_process_cannot_be_in_two_sessions(self):
        program = self.start_before("rounds=1")
        first = self.attach(program)
        self.wait_until_recording(first)
        _, err = self.finish(self.attach(program, output="second"), status=121)
        self.assertIn("another recording has this process", err)
        self.touch("go0")
        self.wait_for(lambda: self.reports() == 1)
        self.stop(first)
        self.assert_complete(EVENTS)

    def test_program_whose_library_is_off(self):
        self.before = {k: v for k, v in self.before.items() if k != "WEFT_DIR"}
        program = self.start_before()
        _, err = self.finish(self.attach(program), status=121)
        self.assertIn("WEFT_DIR was not set", err)
        self.assertFalse((self.folder / "trace").exists())


class Unprivileged(FoundTest):
    """An unprivileged user: ring sets that cannot be searched for are skipped; --pid is refused."""

    def setUp(self):
        super().setUp()
        self.unprivileged = {"user": 65534, "group": 65534, "extra_groups": []}
        if subprocess.run([WEFT, "--version"], check=False, **self.unprivileged,
                          stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("the build's folder is not readable for other users")

    def test_unannounced_ring_sets_are_not_recorded(self):
        self.touch("release")
        self.record("-e", "emitter:*", program=self.hidden("no-socket"), **self.unprivileged)
        self.assertEqual(self.counts()["emitted"], 0)
        self.assertEqual(self.summary()["notices"], [])

    def test_attaching_is_refused(self):
        program = subprocess.Popen([str(word) for word in self.hidden()],
                                   env=os.environ | {"WEFT_DIR": "/nowhere"}, **self.unprivileged)
        self.running.append(program)
        self.wait_for(lambda: self.reports("ready"))
        done = subprocess.run([WEFT, "record", "-e", "emitter:*", "-o", self.folder / "trace",
                               "--pid", str(program.pid)], capture_output=True, text=True,
                              check=False, **self.unprivileged)
        self.assertEqual(done.returncode, 121, done.stderr)
        self.assertIn("needs root", done.stderr)


if __name__ == "__main__":
    unittest.main()
