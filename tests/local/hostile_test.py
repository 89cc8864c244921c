# SPDX-License-Identifier: Apache-2.0
"""A hostile program of a recording attacks the keeper's doorbell, the first code that looks at its
messages. If it ever got control of the consumer, it would meet that process's sandbox."""

import contextlib
import os
import pathlib
import resource
import shlex
import signal
import socket
import subprocess
import unittest

from tests.local.weft_local import PATIENCE, WEFT, LocalTest, children_of

SILENT = 300  # more than the keeper keeps
KEPT = 256
MOST = 253  # descriptors that the kernel lets one message carry
EVENTS = 5000


class Hostile(LocalTest):
    def begin(self, **popen):
        """Starts a recording that is ready. Its program, the neighbour, waits for go()."""
        where, self.gate = self.folder / "where", self.folder / "gate"
        script = (f"echo $WEFT_DIR >{where}.new; mv {where}.new {where}; "
                  f"while ! test -e {self.gate}; do sleep 0.01; done; exec ")
        self.weft = self.start("-e", "emitter:*", **popen, program=[
            "sh", "-c", script + shlex.join(map(str, self.emitter("--events", EVENTS)))])
        self.wait_for(where.exists)
        self.doorbell = where.read_text().strip() + "/agent.sock"
        self.processes = self.session_processes(self.weft)
        seen = []
        self.wait_for(lambda: seen.append(self.descriptors()) or (len(seen) > 100 and len(set(seen[-100:])) == 1))
        self.quiet = seen[-1]

    def go(self):
        """Checks that the keeper has no more descriptors than before, that the processes did not
        change, and that all events of the neighbour are there."""
        self.wait_for(lambda: self.descriptors() <= self.quiet, "descriptors stay in the keeper")
        self.assertEqual(self.session_processes(self.weft), self.processes)
        self.gate.touch()
        _, err = self.finish(self.weft)
        self.assert_complete(EVENTS)
        return err

    def descriptors(self):
        """Returns how many descriptors the keeper has open."""
        return len(os.listdir(f"/proc/{self.processes['weft-keeper']}/fd"))

    def call(self):
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(caller.close)
        caller.settimeout(PATIENCE)
        caller.connect(self.doorbell)
        return caller

    def memory(self):
        fd = os.memfd_create("hostile")
        self.addCleanup(os.close, fd)
        return fd

    def test_silent_callers(self):
        self.begin()
        callers = [self.call() for _ in range(SILENT)]
        self.assertEqual(callers[0].recv(1), b"", "the oldest is sent away")
        # Each that is left has a connection and a pidfd.
        self.wait_for(lambda: self.quiet < self.descriptors() <= self.quiet + 2 * KEPT)
        for caller in callers:
            caller.close()
        self.go()

    def test_unexpected_descriptors_and_bytes(self):
        self.begin()
        memory, pipe = self.memory(), os.pipe()
        for end in pipe:
            self.addCleanup(os.close, end)
        for size in (0, 1, 64, 65, 100_000):
            for descriptors in ([], [memory], [pipe[0]], [memory, pipe[1]], [memory] * MOST):
                with self.call() as caller, contextlib.suppress(OSError):  # it may have had enough
                    socket.send_fds(caller, [os.urandom(size)], descriptors)
                    socket.send_fds(caller, [b"more"], descriptors)
        self.go()

    def sent_away(self, descriptors):
        """The answer to the call is its end."""
        with self.call() as caller:
            socket.send_fds(caller, [b"x"], descriptors)
            self.assertEqual(caller.recv(1), b"", "it was answered")

    def fill(self, agent):
        """Sends more, while this agent stands still, than a keeper with few descriptors may hold.
        The others wait."""
        os.kill(agent, signal.SIGSTOP)
        memory = self.memory()
        for _ in range(2 * KEPT):
            with self.call() as caller:
                socket.send_fds(caller, [b"x"], [memory])

    def test_a_full_vault(self):
        self.begin(preexec_fn=few_descriptors)
        self.fill(self.processes["weft-agent"])
        # Each that is kept has its memory and a pidfd.
        self.wait_for(lambda: self.descriptors() > self.quiet + KEPT)
        self.assertLess(self.descriptors(), self.quiet + 2 * KEPT)
        os.kill(self.processes["weft-agent"], signal.SIGCONT)
        self.go()

    def test_a_full_vault_is_reported_once(self):
        folder = self.folder / "session"
        folder.mkdir()
        self.doorbell = str(folder / "agent.sock")
        with subprocess.Popen([WEFT.parent / "weft-keeper", "--dir", folder], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, preexec_fn=few_descriptors) as keeper:
            self.running.append(keeper)
            self.wait_for(lambda: os.path.exists(self.doorbell))
            self.sent_away([])  # once the keeper listens: the agent has only made the socket
            agent, = children_of(keeper.pid)
            self.fill(agent)
            said = ""
            while "no more descriptors" not in said:
                line = keeper.stderr.readline()
                self.assertTrue(line, said)
                said += line
            os.kill(agent, signal.SIGCONT)
            keeper.terminate()
            err = said + keeper.communicate(timeout=PATIENCE)[1]
        self.assertEqual(err.count("weft-keeper: no more descriptors can be kept"), 1, err)

    def test_every_thread_of_the_consumer_is_in_its_sandbox(self):
        self.begin()
        tasks = list(pathlib.Path(f"/proc/{self.processes['weft-consumer']}/task").iterdir())
        self.assertGreaterEqual(len(tasks), 2)
        for task in tasks:
            lines = (task / "status").read_text().splitlines()
            status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
            self.assertEqual(status["Seccomp"], "2", status)
            self.assertEqual(status["NoNewPrivs"], "1", status)
            for capabilities in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                self.assertEqual(int(status[capabilities], 16), 0, status)
        self.go()


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


if __name__ == "__main__":
    unittest.main()
