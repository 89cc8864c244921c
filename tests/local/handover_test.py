# SPDX-License-Identifier: Apache-2.0
"""Two keepers of one node: one has the lease, and what it keeps goes to the other, with every
caller of a doorbell; whatever ends in between, one of them goes on with all of it. The agent is a
program of this test that logs the messages it gets."""

import array
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from tests.local.weft_local import PATIENCE, WEFT, LocalTest, is_running

KEEPER = pathlib.Path(WEFT).with_name("weft-keeper")

# Keeps what a first agent keeps, and writes every message with its descriptors' inodes into DIR/PID.log.
AGENT = f"""#!{sys.executable}
import array, json, os, socket, sys
folder = sys.argv[sys.argv.index("--dir") + 1]
keeper = socket.socket(fileno=3)
standby = "--standby" in sys.argv
log = open(f"{{folder}}/{{os.getpid()}}.{{'standby' if standby else 'log'}}", "w", buffering=1)

def say(message, fd=None):
    if fd is not None:
        message["fd"] = 0
    rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    keeper.sendmsg([json.dumps(message).encode()], rights)

say({{"type": "Heartbeat", "done": 0, "pending": 0}})
kept = {{}}
while True:
    data, rights, _, _ = keeper.recvmsg(1 << 17, 1 << 12)
    if not data:
        break
    fds = array.array("i")
    for level, kind, bytes_ in rights:
        fds.frombytes(bytes_[:len(bytes_) // 4 * 4])
    message = json.loads(data)
    message["inodes"] = [os.fstat(fd).st_ino for fd in fds]
    if message["type"] == "Kept":
        kept[message["key"]] = fds[0]
    if message["type"] == "KeptComplete" and not standby:
        if not kept:
            say({{"type": "Keep", "key": "session/one", "meta": "notes"}}, os.memfd_create("one"))
            server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.path.exists(f"{{folder}}/agent.sock"):
                os.unlink(f"{{folder}}/agent.sock")
            server.bind(f"{{folder}}/agent.sock")
            server.listen(100)
            kept["doorbell/pod"] = server.fileno()
            say({{"type": "Keep", "key": "doorbell/pod", "meta": ""}}, server.fileno())
        say({{"type": "ListenDoorbell", "name": "pod"}}, kept["doorbell/pod"])
        say({{"type": "Hello", "version": 1, "pid": os.getpid()}})
    log.write(json.dumps(message) + "\\n")
"""


class Node:
    """A node's keepers: a folder of state, and the processes."""

    def __init__(self, test):
        self.test = test
        self.state = test.folder / "state"
        self.programs = test.folder / "bin"
        self.state.mkdir()
        self.programs.mkdir()
        agent = self.programs / "weft-node-agent"
        agent.write_text(AGENT, encoding="utf-8")
        agent.chmod(0o755)

    def start(self):
        keeper = subprocess.Popen([KEEPER, "--state-dir", self.state, "--kubelet-dir", self.state,
                                   "--bin", self.programs])
        self.test.addCleanup(self.end, keeper)
        return keeper

    @staticmethod
    def end(keeper):
        if keeper.poll() is None:
            keeper.send_signal(signal.SIGCONT)
            keeper.kill()
        keeper.wait()

    def agents(self, kind="log"):
        return {int(path.stem) for path in self.state.glob(f"*.{kind}")}

    def said(self, agent):
        """Returns the messages that the agent got so far."""
        lines = (self.state / f"{agent}.log").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def next_agent(self, known):
        """Returns the agent that a keeper started after `known`, when it has all messages."""
        agent = self.test.wait_for(lambda: self.agents() - known, "no agent comes").pop()
        self.test.wait_for(lambda: any(m["type"] == "KeptComplete" for m in self.said(agent)),
                  "the agent is not told all")
        return agent

    def kept(self, agent):
        """Returns meta and inodes of each kept descriptor by its key."""
        return {m["key"]: (m["meta"], m["inodes"]) for m in self.said(agent) if m["type"] == "Kept"}

    def arrived(self, agent):
        return {bytes.fromhex(m["message"]).decode(): m["inodes"][0] for m in self.said(agent)
                if m["type"] == "Arrived"}

    def call(self):
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        caller.connect(str(self.state / "agent.sock"))
        self.test.addCleanup(caller.close)
        return caller


def ring(caller, text):
    """Sends memory through the doorbell; its inode."""
    memory = os.memfd_create(text)
    inode = os.fstat(memory).st_ino
    caller.sendmsg([text.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
    os.close(memory)
    return inode


class Handover(LocalTest):

    def setUp(self):
        super().setUp()
        self.node = Node(self)
        self.old = self.node.start()
        self.first = self.node.next_agent(set())
        self.wait_for(lambda: (self.node.state / "agent.sock").exists(), "no doorbell")

    def test_all_goes_to_the_new_keeper(self):
        arrived = {"early": ring(self.node.call(), "early")}
        self.wait_for(lambda: self.node.arrived(self.first) == arrived, "early does not arrive")
        silent = self.node.call()
        new = self.node.start()
        second = self.node.next_agent({self.first})
        kept = self.node.kept(second)
        self.assertEqual(kept["session/one"][0], "notes")
        self.assertIn("doorbell/pod", kept)
        # A caller that was accepted and had said nothing yet, one that comes in between, one later.
        arrived["silent"] = ring(silent, "silent")
        arrived["late"] = ring(self.node.call(), "late")
        self.wait_for(lambda: self.node.arrived(second) == arrived,
                       "a caller does not get through to the new keeper")
        self.assertFalse(is_running(self.first), "two agents")
        # At SIGTERM the old keeper, which is retired, ends.
        self.old.terminate()
        self.assertEqual(self.old.wait(PATIENCE), 0)
        self.assertIsNone(new.poll())
        self.assertEqual(self.node.agents(), {self.first, second})

    def test_callers_while_it_is_handed_over(self):
        arrived, known = {}, {self.first}
        for number in range(5):
            keeper = self.node.start()
            for i in range(20):
                text = f"{number}-{i}"
                arrived[text] = ring(self.node.call(), text)
            agent = self.node.next_agent(known)
            known.add(agent)
            self.old.terminate()
            self.assertEqual(self.old.wait(PATIENCE), 0)
            self.old = keeper
        self.wait_for(lambda: self.node.arrived(agent) == arrived, "callers are lost")

    def test_the_old_keeper_goes_on_where_the_new_one_ends(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(end=end.name):
                known = self.node.agents()
                new = self.node.start()
                second = self.node.next_agent(known)
                kept = self.node.kept(second)
                new.send_signal(end)
                new.wait(PATIENCE)
                third = self.node.next_agent(known | {second})
                if end == signal.SIGTERM:
                    self.assertEqual(self.node.kept(third), kept)
                self.assertFalse(is_running(second), "two agents")

    def test_a_new_keeper_that_does_not_take_it(self):
        new = self.node.start()
        new.send_signal(signal.SIGSTOP)
        known = {self.first}
        # It may have been stopped before it asked, or after it had all.
        time.sleep(0.1)
        self.assertIsNone(self.old.poll())
        new.kill()
        new.wait()
        caller = ring(self.node.call(), "afterwards")
        self.wait_for(lambda: any("afterwards" in self.node.arrived(agent) and
                                   self.node.arrived(agent)["afterwards"] == caller
                                   for agent in self.node.agents()), "the old keeper does not go on")
        self.assertGreaterEqual(self.node.agents(), known)

    def test_the_lease_ends_with_the_last_process(self):
        os.kill(self.first, signal.SIGSTOP)
        self.addCleanup(lambda: is_running(self.first) and os.kill(self.first, signal.SIGKILL))
        self.old.kill()
        self.old.wait()
        self.node.start()
        self.wait_for(lambda: self.node.agents("standby"), "no keeper waits")
        time.sleep(0.3)
        self.assertEqual(self.node.agents(), {self.first}, "an agent runs beside one that may wake")
        os.kill(self.first, signal.SIGKILL)
        self.node.next_agent({self.first})


if __name__ == "__main__":
    unittest.main()
