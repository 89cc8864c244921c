# SPDX-License-Identifier: Apache-2.0
"""If a process dies in the middle of a recording, every event is still in the trace exactly
once."""

import contextlib
import os
import signal
import time
import unittest

from tests.local.weft_local import EMITTER, PATIENCE, LocalTest, is_running, session_folder

LONG = os.environ.get("WEFT_LONG") == "1"


class Deaths(LocalTest):
    def record_and_kill(self, *names, rounds=3):
        # The program stays until the last process was killed.
        release = self.folder / "release"
        self.addCleanup(release.touch)
        weft = self.start("-e", "emitter:*",
                          program=self.emitter("--events", 1500, "--threads", 4, "--children", 3,
                                               "--pause-us", 200, "--hold-children", release))
        self.wait_for(lambda: "weft-consumer" in self.session_processes(weft))
        for _ in range(rounds):
            for name in names:
                time.sleep(0.05)
                if weft.poll() is None:
                    self.kill(weft, name)
        release.touch()
        self.finish(weft)
        self.assert_complete(4 * 4 * 1500)

    def test_consumer(self):
        self.record_and_kill("weft-consumer")
        self.assertGreaterEqual(self.summary()["recoveries"], 1)

    def test_agent(self):
        self.record_and_kill("weft-agent")

    def test_agent_and_consumer(self):
        self.record_and_kill("weft-agent", "weft-consumer", rounds=2)

    def test_repeated_deaths(self):
        if not LONG:
            self.skipTest("only in the long form")
        for i in range(30):
            self.record_and_kill("weft-agent" if i % 2 else "weft-consumer", rounds=5)
            self.doCleanups()
            self.setUp()

    def test_agent_while_programs_start(self):
        from tests.local.weft_local import EMITTER
        script = f"for i in $(seq 120); do {EMITTER} --events 5 --report {self.report}; done"
        weft = self.start("-e", "emitter:*", program=["sh", "-c", script])
        for _ in range(3):
            self.kill(weft, "weft-agent")
        self.finish(weft)
        self.assert_complete(600)

    def keeper_and_folder(self, weft):
        keeper = self.wait_for(lambda: self.session_processes(weft).get("weft-keeper"))
        return keeper, self.wait_for(lambda: session_folder(keeper))

    def test_keeper_in_its_last_moment(self):
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 10))
        keeper, folder = self.keeper_and_folder(weft)
        self.wait_for((self.folder / "summary.json").exists)  # all is written; what follows is the end
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGKILL)
        self.finish(weft)
        self.assert_complete(10)
        self.assertFalse(folder.exists())

    def test_what_killed_processes_left_is_removed_by_the_next_recording(self):
        gate = self.folder / "gate"
        self.addCleanup(gate.touch)
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 10, "--hold", gate))
        keeper, folder = self.keeper_and_folder(weft)
        self.wait_for((folder / "session.json").exists)
        others = [pid for name, pid in self.session_processes(weft).items() if name != "weft-keeper"]
        os.kill(keeper, signal.SIGSTOP)
        weft.kill()
        os.kill(keeper, signal.SIGKILL)
        weft.wait(PATIENCE)  # its program may have begun, and then keeps the pipes open
        # Another test's recording may remove the folder from here on.
        self.wait_for(lambda: not any(is_running(pid) for pid in others))
        living = self.start("-e", "emitter:*", program=self.emitter("--events", 10, "--hold", gate), output="living")
        _, other = self.keeper_and_folder(living)
        self.record("-e", "emitter:*", program=[EMITTER, "--events", 10], output="next")
        self.assertFalse(folder.exists())
        self.assertTrue(other.exists(), "a recording that goes on has its folder")
        gate.touch()
        self.finish(living)

    def test_weft_itself_killed(self):
        hold, times = self.folder / "hold", self.folder / "times"
        weft = self.start("-e", "emitter:*", program=self.emitter("--events", 2000, "--times", times, "--hold", hold))
        keeper = self.wait_for(lambda: self.session_processes(weft).get("weft-keeper"))
        # All events are emitted, and the first ones are written.
        self.wait_for(lambda: (self.folder / "times.0").exists() and self.metadata_is_there())
        weft.send_signal(signal.SIGKILL)
        weft.wait()
        hold.touch()
        # The keeper stops, drains and ends by itself.
        self.wait_for(lambda: not os.path.exists(f"/proc/{keeper}"))
        lines, said = self.babeltrace()
        self.assertEqual(said, "")
        self.assertEqual(len(lines), 2000)

    def metadata_is_there(self):
        found = list((self.folder / "trace").glob("ust/uid/*/64-bit/user_*"))
        return bool(found)


if __name__ == "__main__":
    unittest.main()
