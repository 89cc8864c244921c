# SPDX-License-Identifier: Apache-2.0
"""More ring sets than there are descriptors: they wait until others are finished. Kept and lost
events add up to what the programs emitted. A limit of open files that is too low is refused before
anything is made."""

import contextlib
import ctypes
import functools
import os
import re
import resource
import shlex
import signal
import subprocess
import time
import unittest

from tests.local.weft_local import EMITTER, PATIENCE, WEFT, LocalTest, children_of, session_folder

NEEDED = re.compile(r"weft: the limit of open files is (\d+), and recording needs (\d+) at least: raise the hard limit.*")


def limited(limit):
    """Limits weft's open files; for preexec_fn."""
    return functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit))


def until(path):
    """Returns a shell's loop that waits for a file."""
    return f"while ! test -e {path}; do sleep 0.01; done"


class ShortProcesses(LocalTest):
    def record_children(self, limit, children, *options):
        _, err = self.record("-e", "emitter:*", preexec_fn=limited(limit),
                             program=self.emitter("--events", 1, "--children", children, *options))
        self.assertEqual(self.emitted(), children + 1)
        self.assert_complete(children + 1)
        self.assertEqual(self.counts()["rings"], children + 1)
        self.assertEqual(self.counts()["tail_unknown"], 0)
        return err

    def test_two_thousand_in_turn(self):
        self.record_children(1024, 2000, "--in-turn", 1)

    def test_with_few_descriptors(self):
        self.record_children(256, 1000, "--in-turn", 1)

    def test_with_the_fewest_descriptors(self):
        self.record_children(128, 300, "--in-turn", 1)

    def test_many_at_once(self):
        self.record_children(256, 500)

    def test_a_snapshot_of_more_than_there_is_room_for(self):
        self.record("-e", "emitter:*", "--snapshot", preexec_fn=limited(256),
                    program=self.emitter("--events", 1, "--children", 300, "--in-turn", 1))
        self.assert_complete(301)


class FullPrograms(LocalTest):
    """The traced programs themselves have hardly a descriptor left, or none."""

    def test_any_number_of_free_descriptors(self):
        for free in range(5):
            with self.subTest(free=free):
                self.record("-e", "emitter:*", output=f"free{free}",
                            program=[EMITTER, "--events", "10", "--free-descriptors", str(free)])
                self.assert_complete(10, output=f"free{free}")

    def test_children_with_a_low_limit(self):
        for limit in range(6):
            with self.subTest(limit=limit):
                weft = self.start("-e", "emitter:*", output=f"limit{limit}",
                                  program=[EMITTER, "--events", "10", "--children", "5", "--in-turn", "1",
                                           "--children-limit", str(limit)])
                weft.wait(PATIENCE)
                unknown = self.counts()["tail_unknown"]
                self.finish(weft, 123 if unknown else 0)
                # A ring set and the socket that announces it are open at the same time. With one
                # descriptor, a child's ring set is read if the agent finds it before the child
                # ends.
                self.assertIn(unknown, {0: [5], 1: range(6)}.get(limit, [0]))
                self.assert_complete(10 + 10 * (5 - unknown), output=f"limit{limit}")


class LivingProcesses(LocalTest):
    def test_more_than_there_is_room_for(self):
        """The others' ring sets wait in the socket, and are read at the end. Many are found meanwhile, too."""
        ready, gate = self.folder / "ready", self.folder / "gate"
        one = shlex.join([str(EMITTER), "--events", "3", "--hold", str(gate)])
        script = f"for i in $(seq 100); do {one} --times {self.folder}/times$i </dev/null >/dev/null 2>&1 & done; {until(ready)}"
        weft = self.start("-e", "emitter:*", preexec_fn=limited(128), program=["sh", "-c", script])
        shell, = self.wait_for(lambda: [pid for pid in children_of(weft.pid) if emitters_below(pid)])
        emitters = self.wait_for(lambda: found if len(found := emitters_below(shell)) == 100 else None)
        self.addCleanup(end_emitters, emitters)
        self.wait_for(lambda: len(list(self.folder.glob("times*.0"))) == 100, "not all have emitted")
        ready.touch()
        self.finish(weft)
        self.assert_complete(300)
        self.assertEqual(self.counts()["rings"], 100)

    def test_events_without_a_reader_are_counted(self):
        """The consumer stands still: no descriptor comes back, and the end is not waited for without end."""
        begun, stopped, done, end = (self.folder / name for name in ("begun", "stopped", "done", "end"))
        one = shlex.join([str(EMITTER), "--events", "1", "--children", "100", "--in-turn", "1"])
        script = f"touch {begun}; {until(stopped)}; {one}; touch {done}; {until(end)}"
        weft = self.start("-e", "emitter:*", preexec_fn=limited(128), program=["sh", "-c", script])
        self.wait_for(begun.exists)
        consumer = self.session_processes(weft)["weft-consumer"]
        os.kill(consumer, signal.SIGSTOP)
        stopped.touch()
        self.wait_for(done.exists)
        end.touch()
        self.wait_for(lambda: self.is_counted(weft))
        os.kill(consumer, signal.SIGCONT)
        self.finish(weft, status=123)
        counts = self.counts()
        self.assertEqual(counts["emitted"], 101, counts)
        self.assertGreater(counts["delivered"], 0)
        self.assertGreater(counts["lost"]["keeper/too_many_rings"], 0)

    def is_counted(self, weft):
        folder = session_folder(self.session_processes(weft)["weft-keeper"])
        return "keeper/too_many_rings" in (folder / "session.json").read_text()


class Unprivileged(LocalTest):
    """Such a user's ring sets are recorded when they are announced, or not at all."""

    def setUp(self):
        super().setUp()
        tried = subprocess.run([WEFT, "--version"], check=False, preexec_fn=become_unprivileged, stdout=subprocess.DEVNULL)
        if tried.returncode != 0:
            self.skipTest("the build's folder is not readable for other users")

    def record_living(self, children, before, stands_still=()):
        """Runs children that live at the same time and end without exit(); none begins after them.
        `stands_still`: the session's processes that are stopped before, and go on when the program
        has ended. An agent is killed instead."""
        begin, end = self.folder / "begin", self.folder / "end"
        weft = self.start("-e", "emitter:*", preexec_fn=before,
                          program=self.emitter("--events", 2, "--children", children, "--begin", begin,
                                               "--hold-children", end))
        emitter, = self.wait_for(lambda: emitters_below(weft.pid))
        stopped = {name: self.session_processes(weft)[name] for name in stands_still}
        for pid in stopped.values():
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(go_on, pid)
        begin.touch()
        emitters = self.wait_for(lambda: found if len(found := emitters_below(emitter)) == children else None)
        self.addCleanup(end_emitters, emitters)
        self.wait_for(lambda: self.report.exists() and self.emitted() == 2 * (children + 1))
        end.touch()
        self.wait_for(lambda: not is_emitter(emitter))
        for name, pid in stopped.items():
            os.kill(pid, signal.SIGKILL if name == "weft-agent" else signal.SIGCONT)
        said = self.finish(weft, status=123)[1]
        counts = self.counts()
        self.assertGreater(counts["tail_unknown"], 0)
        self.assertIn(f"the end of {counts['tail_unknown']} ring sets is not known", said)
        self.assertEqual(counts["delivered"] + 2 * counts["tail_unknown"], 2 * (children + 1), counts)
        self.assertEqual(counts["rings"], children + 1)

    def test_each_process_that_cannot_be_taken_in_is_counted(self):
        """The kernel lets this user's processes have no more descriptors on their way than their limit."""
        def before():
            limited(128)()
            become_unprivileged()
        self.record_living(400, before)

    def test_names_wait_for_processes_that_stand_still(self):
        """Names are written whatever weft's processes do. The program does not wait for them."""
        def before():
            limited(128)()
            become_unprivileged()
        self.record_living(400, before, stands_still=("weft-consumer", "weft-agent", "weft-keeper"))

    def test_a_full_backlog_takes_names(self):
        """The keeper stands still, and so few callers wait."""
        if os.getuid() != 0:
            self.skipTest("a short backlog needs root")
        def before():
            shorten_backlogs()
            become_unprivileged()
        self.record_living(60, before, stands_still=("weft-keeper",))


class TooLow(LocalTest):
    def test_is_refused_at_once(self):
        said = self.record("-e", "emitter:*", preexec_fn=limited(64), status=123)[1]
        found = NEEDED.fullmatch(said.splitlines()[0])
        self.assertTrue(found, said)
        self.assertEqual(int(found[1]), 64)
        self.assertFalse((self.folder / "trace").exists())
        self.assertFalse(self.report.exists(), "the program ran")
        # The number that it asks for is enough.
        self.record("-e", "emitter:*", preexec_fn=limited(int(found[2])), program=self.emitter("--events", 10))
        self.assert_complete(10)


def become_unprivileged():
    """Returns a function to run before weft, if this is root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def shorten_backlogs():
    """Returns a function to run before weft: sockets of a network namespace of its own have a
    backlog of 8."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    with open("/proc/sys/net/core/somaxconn", "w", encoding="ascii") as somaxconn:
        somaxconn.write("8")


def is_emitter(pid):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", EMITTER)
    except OSError:
        return False


def emitters_below(pid):
    """Returns its children that are emitters: a shell has others, too."""
    return [child for child in children_of(pid) if is_emitter(child)]


def end_emitters(pids):
    """Leaves nothing behind if a test fails: the file that they wait for goes with its folder."""
    for pid in pids:
        if is_emitter(pid):
            os.kill(pid, signal.SIGKILL)


def go_on(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    unittest.main()
