# SPDX-License-Identifier: Apache-2.0
"""weft record --pid says why it does not attach to a process, and leaves it as it was. Needs root, as
attach_test.py."""

import os
import pathlib
import subprocess
import unittest

from tests.debugger import traced
from tests.local.attach_test import AttachTest


class Refusals(AttachTest):
    def refused(self, process, reason, status=121):
        _, err = self.finish(self.attach(process, options=self.functions()), status=status)
        self.assertIn(reason, err)
        self.assertFalse((self.folder / "trace").exists())
        return err

    def test_process_that_is_not_there(self):
        self.refused(2147483647, "there is no process 2147483647")

    def test_process_that_another_recording_attaches_to_at_once(self):
        program = self.run_program("busy")
        both = [self.attach(program, output=name) for name in ("one", "two")]
        self.wait_for(lambda: any(weft.poll() is not None for weft in both))
        refused, records = sorted(both, key=lambda weft: weft.poll() is None)
        # The lock may be held for longer than it is waited for.
        self.assertNotEqual(refused.poll(), 0)
        _, err = self.finish(refused, status=refused.poll())
        self.assertRegex(err, "another recording has this process already|another weft agent is loading libweft.so")
        self.stop(records)
        self.end_program(program)

    def test_process_that_has_ended(self):
        process = subprocess.Popen(["true"])
        self.addCleanup(process.wait)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.refused(process, "has ended")

    def test_process_whose_first_thread_has_ended(self):
        code = ("import ctypes, threading, time\n"
                "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
                "ctypes.CDLL(None).pthread_exit(None)\n")
        process = subprocess.Popen(["/usr/bin/python3", "-c", code])
        self.running.append(process)
        state = pathlib.Path(f"/proc/{process.pid}/stat")
        self.wait_for(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "Z", "its first thread goes on")
        self.refused(process, "its first thread has ended")

    def test_process_that_forbids_the_time_stamp_counter(self):
        code = ("import ctypes, signal\n"
                "print(ctypes.CDLL(None).prctl(26, 2, 0, 0, 0), flush=True)\n"  # PR_SET_TSC, PR_TSC_SIGSEGV
                "signal.pause()\n")
        with subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), b"0\n")
            self.refused(process, "time stamp counter")
            process.kill()

    def test_process_whose_filter_kills_for_calls_that_need_no_trial(self):
        program = self.run_program("strict", "busy")
        self.refused(program, "its seccomp filter kills")
        self.end_program(program)

    def test_process_under_a_debugger(self):
        program = self.run_program("busy")
        with traced(program.pid) as by:
            self.refused(program, f"process {by} traces it")
        self.end_program(program)

    def test_process_under_a_debugger_that_was_recorded_before(self):
        program = self.run_program("busy")
        self.stop(self.attach_and_wait(program, "first"))
        with traced(program.pid) as by:
            self.refused(program, f"process {by} traces it")
        self.end_program(program)


if __name__ == "__main__":
    unittest.main()
