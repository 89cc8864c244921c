# SPDX-License-Identifier: Apache-2.0
"""The agent and the sandboxed consumer are killed at every place where state passes over
(lib/base/kill_point.h) in the middle of a recording: every event is still in the trace exactly
once."""

import os
import pathlib
import shutil
import unittest

from tests.local import weft_local
from tests.local.weft_local import BUILD, LocalTest

# Places at which the agent hands state over, and how often it passes them before it is killed.
AGENT = {
    "journal_kept": 1, "before_session": 1, "session_written": 1, "session_renamed": 1, "created": 1,
    "consumer_asked_for": 1, "begun": 1, "begun_saved": 1, "begun_published": 1, "greeted": 1,
    "channel_ready": 1,
    "arrived": 3, "process_kept": 3, "ring_kept": 3, "ring_queued": 3, "ring_told": 3,
    "process_gone": 3, "ring_done": 2, "ring_released": 2, "ring_dropped": 2,
    "stopping_saved": 1, "stopping_published": 1, "sync_asked_for": 1, "synced": 1,
    "drained": 1, "drained_saved": 1, "drained_dropped": 1, "owner_gone": 1,
}
# Places in its start. A first agent has nothing to restore there.
AGENT_AGAIN = {"kept": 4, "life_kept": 1, "restored": 1, "resumed": 1, "greeted": 1, "ring_told": 2}
# Each list is one start after the other. The metadata of a few kinds of events is written once.
CONSUMER = [["metadata:1"]] + [[f"{name}:2", f"{name}:1"] for name in (
    "before_packets", "packets", "before_journal", "journal", "tails")]


class KillPoints(LocalTest):
    def setUp(self):
        super().setUp()
        self.lives = self.folder / "lives"
        self.real_weft = weft_local.WEFT
        self.addCleanup(setattr, weft_local, "WEFT", self.real_weft)

    def install(self, *killed):
        """Makes an install tree whose programs `killed` have kill points."""
        tree = self.folder / "tree"
        (tree / "bin").mkdir(parents=True)
        (tree / "lib").symlink_to(BUILD / "lib")
        for name in ("weft-keeper", "weft-agent", "weft-consumer"):
            (tree / "bin" / name).symlink_to(BUILD / "bin" / name)
        for name in killed:
            (tree / "bin" / name).unlink()
            (tree / "bin" / name).symlink_to(BUILD / "node-agent" / name.removeprefix("weft-") /
                                             (name + "-test"))
        # It looks for the others where it lies itself.
        weft_local.WEFT = pathlib.Path(shutil.copy(self.real_weft, tree / "bin" / "weft"))

    def record_killed_at(self, places):
        """Kills one life after the other at NAME:COUNT of `places`."""
        emitter = f"{weft_local.EMITTER} --report {self.report}"
        script = (f"{emitter} --events 400 --threads 3 --children 2 --pause-us 500 & "
                  f"for i in $(seq 12); do {emitter} --events 7; done; wait")
        environment = dict(os.environ, WEFT_KILL_AT=",".join(places), WEFT_KILL_LIVES=str(self.lives))
        self.record("-e", "emitter:*", program=["sh", "-c", script], env=environment)
        self.assertGreater(self.lives.stat().st_size, len(places), "it was not killed there")
        self.assert_complete(3 * 3 * 400 + 12 * 7)

    def each(self, killed, rounds):
        self.install(killed)
        for places in rounds:
            with self.subTest(places=places):
                self.record_killed_at(places)
            for left in ("trace", "report", "lives", "summary.json"):
                path = self.folder / left
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def test_agent_where_state_passes_over(self):
        self.each("weft-agent", [[f"{name}:{count}"] for name, count in AGENT.items()])

    def test_agent_while_it_restores(self):
        self.each("weft-agent", [["ring_queued:4", f"{name}:{count}"]
                                 for name, count in AGENT_AGAIN.items()])

    def test_consumer_in_its_sandbox(self):
        self.each("weft-consumer", CONSUMER)


if __name__ == "__main__":
    unittest.main()
