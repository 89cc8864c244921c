# SPDX-License-Identifier: Apache-2.0
"""Kernel events on a node of a cluster, in a guest: two tenants, each of which gets what its own pods ask of the
kernel and nothing of the other's; the agent's end in between; and what is said where there is no module."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from tests.vm import missed_hits
from tests.vm.node import PATIENCE, NodeTest, Tenant, name_of, order

MODULE = pathlib.Path(os.environ["WEFT_MODULE"])
RELEASE = os.uname().release
# It names one that belongs to no namespace.
KERNEL = {"tracepoints": [{"name": "sched_switch"}, {"name": "sched_wak*"}, {"name": "sched_process_*"},
                          {"name": "signal_*"}, {"name": "irq_handler_entry"}],
          "syscalls": [{"name": "openat"}, {"name": "kill"}, {"name": "unlink"}]}
# Makes files of its own name, sleeps, is woken by its own signals and sends some to the other's
# process, whose number it reads from a file that both know. Both share a CPU, so that each follows
# the other.
PROGRAM = """
import os, signal, sys, time
name, own, other = sys.argv[1:]
os.sched_setaffinity(0, {0})
open("/proc/self/comm", "w").write(name)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
with open(own + ".new", "w") as f:
    f.write(str(os.getpid()))
os.rename(own + ".new", own)
while not os.path.exists(other):
    time.sleep(0.01)
peer = int(open(other).read())
for i in range(100):
    path = "/tmp/%s-%d" % (name, i)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    os.unlink(path)
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(peer, signal.SIGUSR1)
    for j in range(20000):
        pass
    time.sleep(0.001)
open(own + ".done", "w").close()
while not os.path.exists(other + ".done"):
    time.sleep(0.01)
"""
# One works while the other waits (asleep, when its turn is taken); then the second naps while the first only computes,
# on the same CPU. Prints when.
TURNS = """
import mmap, os, socket, sys, time
name, first, own, other = sys.argv[1:]
os.sched_setaffinity(0, {0})
open("/proc/self/comm", "w").write(name)
turn, peer = (os.open(path, os.O_RDWR) for path in (own, other))
def give():
    os.write(peer, b"%d" % os.getpid())
def take():
    giver = int(os.read(turn, 20))
    while open("/proc/%d/stat" % giver).read().rsplit(")", 1)[1].split()[0] != "S":
        pass
def work():
    listener = socket.create_server(("127.0.0.1", 0))
    sender, receiver = socket.create_connection(listener.getsockname()), listener.accept()[0]
    disk = os.open("/dev/ram0", os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    began = time.time_ns()
    for i in range(100):
        sender.send(b"x" * 100)
        receiver.recv(200)
        os.pwrite(disk, page, 0)
    print("works", began, time.time_ns(), flush=True)
if first == "yes":
    take()
    work()
    give()
    take()
    for duration in (100_000_000, 500_000_000):  # in the first its pages are read, for which it waits
        began = time.time_ns()
        while time.time_ns() < began + duration:
            pass
    print("computes", began, time.time_ns(), flush=True)
    give()
else:
    give()
    take()
    work()
    give()
    os.set_blocking(turn, False)
    while True:
        time.sleep(0.001)
        try:
            os.read(turn, 20)
            break
        except BlockingIOError:
            pass
"""
# Events that describe the machine's network, disks and memory, besides events that describe tasks.
MACHINE = {"tracepoints": [{"name": name} for name in (
    "net_*", "netif_*", "sock_*", "skb_*", "tcp_*", "block_*", "block_rq_issue", "mm_page_alloc", "sched_switch", "sched_wak*")],
           "syscalls": [{"name": name} for name in ("sendto", "recvfrom", "pwrite64")]}
CONTEXTS = ["procname", "vpid", "nice", "vuid", "pid_ns", "need_reschedule", "migratable", "hostname"]
WAKES = ("sched_waking", "sched_wakeup")
TASK_NUMBERS = ("tid", "pid", "prev_tid", "next_tid", "parent_tid", "parent_pid", "child_tid", "child_pid")
NAMES = ("comm", "prev_comm", "next_comm", "parent_comm", "child_comm")


# ns: the guest's clock is corrected while it runs.
MARGIN = 10**7


def unload():
    subprocess.run(["rmmod", "weft"], check=False, stderr=subprocess.DEVNULL)


class Tenants(NodeTest):
    def setUp(self):
        super().setUp()
        self.modules = self.folder / "modules"
        (self.modules / RELEASE).mkdir(parents=True)
        (self.modules / RELEASE / "weft.ko").symlink_to(MODULE)
        self.addCleanup(unload)

    def record(self, namespace, **spec):
        self.api.put("tracesessions", order(namespace, self.relay, KERNEL, **spec))

    @contextlib.contextmanager
    def modules_that_hang(self):
        """An agent that starts in here does not get to know its module before the end."""
        file, aside = self.modules / RELEASE / "weft.ko", self.folder / "aside"
        file.rename(aside)
        os.mkfifo(file)
        yield
        pipe = os.open(file, os.O_RDWR)
        aside.rename(file)
        self.addCleanup(os.close, pipe)

    def run_both(self, first, second, round_name):
        """Runs both at the same time; returns their process numbers."""
        # The files that they open are in their traces, so the files have no names there.
        places = {first: self.folder / f"{round_name}-1", second: self.folder / f"{round_name}-2"}
        started = []
        for tenant, other in ((first, second), (second, first)):
            process = tenant.run(sys.executable, "-I", "-S", "-c", PROGRAM, tenant.name,
                                 places[tenant], places[other])
            self.running.append(process)
            started.append((tenant, process))
        for tenant, process in started:
            self.assertEqual(process.wait(PATIENCE), 0)
        return {tenant.name: process.pid for tenant, process in started}

    def assert_own_only(self, events, own, pids, other_pids):
        """Checks that the events show neither names nor numbers of others' tasks, and nothing that
        happened among them alone. A program may see the values that it passes to a system call
        itself."""
        for name, fields in events:
            if name.startswith("syscall_"):
                continue
            numbers = {fields[f] for f in TASK_NUMBERS if f in fields}
            self.assertFalse(numbers & set(map(str, other_pids)), (name, fields))
            names = {fields[f] for f in NAMES if f in fields}
            self.assertLessEqual(names, {own, "sh", "python3", "other"}, (name, fields))
            if name == "sched_switch":
                self.assertTrue({fields["prev_tid"], fields["next_tid"]} & set(map(str, pids)),
                                (name, fields))

    def assert_whole(self, namespace, counts, events):
        self.assertEqual(counts.get("lost", 0), 0, counts)
        self.assertEqual(counts["recorded"], counts["delivered"], counts)
        self.assertEqual(len(events), counts["delivered"])
        folders = {f.relative_to(self.folder / "relay" / namespace).parts[:4]
                   for f in (self.folder / "relay" / namespace).rglob("metadata")}
        # TRACE/UID/_node/NODE
        self.assertEqual([(trace, place, node) for trace, _, place, node in folders], [("t", "_node", "n1")])

    def test_a_cluster_wide_session_records_all_tasks_and_events_of_no_namespace(self):
        red, blue = self.tenant("reds", "redsecret"), self.tenant("blues", "bluesecret")
        how = {"cluster_wide": True, "context": ["pid"], "buffer": {"size": "4Mi", "count": 4}}
        self.api.put("tracesessions", order("weft", self.relay, KERNEL, **how))
        self.start_node(modules=self.modules)
        self.wait_condition("weft", "KernelTracing", "True", "Recording")
        self.wait_condition("weft", "Ready", "True", "Recording")
        pids = self.run_both(red, blue, "one")
        counts = self.end("weft", KERNEL, **how)
        events = self.events("weft")
        self.assert_whole("weft", counts, events)
        recorded = {name for name, _ in events}
        self.assertLessEqual({"irq_handler_entry", "lttng_statedump_interrupt"}, recorded)
        switches = [fields for name, fields in events if name == "sched_switch"]
        self.assertLessEqual({"redsecret", "bluesecret"}, {f["next_comm"] for f in switches})
        self.assertNotIn("other", {f[side] for f in switches for side in ("prev_comm", "next_comm")})
        self.assertLessEqual({str(pid) for pid in pids.values()},
                             {fields["pid"] for _, fields in events})
        self.stop_node()

    def test_each_gets_its_own_and_nothing_of_the_other(self):
        red, blue = self.tenant("reds", "redsecret"), self.tenant("blues", "bluesecret",
                                                                 driver="cgroupfs")
        self.record("reds", buffer={"size": "1Mi", "count": 4})
        self.record("blues", buffer={"size": "1Mi", "count": 4})
        self.start_node(modules=self.modules)
        for namespace in ("reds", "blues"):
            said = self.wait_condition(namespace, "KernelTracing", "True", "RecordingInPart")
            self.assertIn("irq_handler_entry", said)
            self.wait_condition(namespace, "Ready", "True", "Recording")
            self.assertEqual(self.status(namespace)["pods"]["traced"], 1)
        pids = [self.run_both(red, blue, "one")]
        with self.modules_that_hang():
            self.kill_agent()
            self.wait_condition("reds", "KernelTracing", "Unknown", "Preparing")
            pids.append(self.run_both(red, blue, "two"))
        self.wait_condition("reds", "KernelTracing", "True")

        for namespace, tenant, other in (("reds", red, blue), ("blues", blue, red)):
            counts = self.end(namespace, KERNEL, buffer={"size": "1Mi", "count": 4})
            events = self.events(namespace)
            self.assert_whole(namespace, counts, events)
            own = [p[tenant.name] for p in pids]
            self.assert_own_only(events, tenant.name, own, [p[other.name] for p in pids])
            self.assertFalse(other.name.encode() in self.bytes_of(namespace), "the other's name")
            self.assert_asked(events, tenant.name, own)
        self.assertIn('weft_kernel_tracing_ready{reason="Loaded"} 1', self.metrics())
        self.stop_node()

    def assert_asked(self, events, own, pids):
        """Checks that all calls of the program are there, twice a hundred times, whichever process
        was away."""
        opened = [f["filename"] for n, f in events
                  if n == "syscall_entry_openat" and f["filename"].startswith(f"/tmp/{own}-")]
        self.assertEqual(opened, [f"/tmp/{own}-{i}" for i in range(100)] * 2)
        kills = [n for n, _ in events if n == "syscall_entry_kill"]
        self.assertEqual(len(kills), 400)
        for pid in map(str, pids):
            self.assertGreater(sum(n == "sched_switch" and f["prev_tid"] == pid for n, f in events), 50)
        generated = [f["comm"] for n, f in events if n == "signal_generate" and f["sig"] == "10"]
        self.assertEqual(generated.count(own), 400, "sent to itself, and by the other")
        self.assertEqual(generated.count("other"), 200, "sent to the other")

    def take_turns(self, first, second):
        """Returns {name: {what it says it did: (begin, end)}}, times in ns since the epoch."""
        fifos = {tenant: self.folder / f"turn-{i}" for i, tenant in enumerate((first, second))}
        for fifo in fifos.values():
            os.mkfifo(fifo)
        processes = {}
        for tenant, other, is_first in ((first, second, "yes"), (second, first, "no")):
            process = tenant.run(sys.executable, "-I", "-S", "-c", TURNS, tenant.name, is_first, fifos[tenant],
                                 fifos[other], stdout=subprocess.PIPE, text=True)
            self.running.append(process)
            processes[tenant] = process
        said = {}
        for tenant, process in processes.items():
            lines = [line.split() for line in process.communicate(timeout=PATIENCE)[0].splitlines()]
            self.assertEqual(process.returncode, 0)
            said[tenant.name] = {what: (int(begin), int(end)) for what, begin, end in lines}
        return said

    def test_tenants_do_not_see_each_others_work(self):
        subprocess.run("test -b /dev/ram0 || modprobe brd", shell=True, check=True)
        red, blue = self.tenant("reds", "redsecret"), self.tenant("blues", "bluesecret")
        how = {"context": CONTEXTS, "buffer": {"size": "2Mi", "count": 4}}
        for namespace in ("reds", "blues"):
            self.api.put("tracesessions", order(namespace, self.relay, MACHINE, **how))
        self.start_node(modules=self.modules)
        for namespace in ("reds", "blues"):
            said = self.wait_condition(namespace, "KernelTracing", "True", "RecordingInPart")
            self.assertIn("block_rq_issue", said)
            self.wait_condition(namespace, "Ready", "True", "Recording")
        said = self.take_turns(red, blue)
        for namespace, own, other in (("reds", red.name, blue.name), ("blues", blue.name, red.name)):
            counts = self.end(namespace, MACHINE, **how)
            self.assertEqual(counts.get("lost", 0), 0, counts)
            events = self.timed_events(namespace)
            names = [name for _, name, _ in events]
            self.assertEqual(names.count("skb_copy_datagram_iovec"), 100)
            self.assertEqual(names.count("syscall_entry_sendto"), 100)
            self.assertFalse([n for n in names if n.startswith(("block_", "net_", "netif_", "tcp_"))])
            self.assertFalse(other.encode() in self.bytes_of(namespace), "the other's name")
            for at, name, fields in events:
                self.assert_not_in(said[other]["works"], at, (name, fields))
                if fields["procname"] == "other":
                    self.assertEqual({fields[c] for c in CONTEXTS if c not in ("procname", "hostname")}, {"0"})
                    self.assertEqual(fields["hostname"], "other")
                if name == "sched_switch" and fields["prev_comm"] == "other":
                    self.assertEqual((fields["prev_tid"], fields["prev_state"]), ("0", "TASK_RUNNING"))
            if own == red.name:
                computes = said[own]["computes"]
                for at, name, fields in events:
                    if computes[0] + MARGIN < at < computes[1] - MARGIN and name != "sched_switch":
                        # A process that computes may wait, too: for a page, or for its map of memory, which the
                        # agent reads.
                        self.assertIn(name, WAKES, "the other's naps end in its interrupts")
                        self.assertEqual(fields["comm"], own, "the other's naps end in its interrupts")
        self.stop_node()

    def assert_not_in(self, window, at, event):
        begin, end = window
        self.assertFalse(begin + MARGIN < at < end - MARGIN, event)

    def test_hits_that_the_kernel_missed(self):
        """It is not said which tasks they were of: a namespace gets no number of them, a reader of metrics does, and a
        session without a scope has them in its counts."""
        red, wide = self.tenant("reds", "red"), {"cluster_wide": True}
        self.api.put("tracesessions", order("reds", self.relay, missed_hits.KERNEL))
        self.api.put("tracesessions", order("weft", self.relay, missed_hits.KERNEL, **wide))
        self.start_node(modules=self.modules)
        for namespace in ("reds", "weft"):
            self.wait_condition(namespace, "Ready", "True", "Recording")
        # Addresses of the kernel are left out.
        before = self.wait_condition("reds", "KernelTracing", "True", "RecordingInPart")
        program = red.run(*missed_hits.PROGRAM)
        self.running.append(program)
        self.assertEqual(program.wait(PATIENCE), 0)
        said = before + "; the kernel did not deliver all hits of its probes; of whom the others were is not known"
        self.wait_for(lambda: self.condition("reds", "KernelTracing")[2] == said,
                      lambda: self.condition("reds", "KernelTracing")[2])
        self.assertEqual(self.condition("weft", "KernelTracing")[1], "Recording")
        known = re.compile(r'weft_kernel_hits_missed_total\{namespace="reds",trace="t"\} (\d+)')
        missed = self.wait_for(lambda: (found := known.search(self.metrics())) and int(found[1]),
                               "the node's metrics have none")
        self.assertGreaterEqual(missed, missed_hits.MISSED)
        own = self.end("reds", missed_hits.KERNEL)
        self.assertEqual((own.get("discarded", 0), own["delivered"]),
                         (0, missed_hits.CALLS + missed_hits.KEPT), own)
        whole = self.end("weft", missed_hits.KERNEL, **wide)
        self.assertEqual([(r["stage"], r["reason"]) for r in whole["reasons"]], [("ring", "missed")])
        self.assertGreaterEqual(whole["discarded"], missed_hits.MISSED)
        at_relay = [line for line in self.metrics(self.relay_http).splitlines()
                    if line.startswith("weft_relay_reported_discarded_total") and 'reason="missed"' in line]
        self.assertEqual([float(line.rsplit(" ", 1)[1]) for line in at_relay], [whole["discarded"]])
        self.stop_node()

    def test_a_clock_that_the_kernel_gives_up_after_it_was_chosen(self):
        """The agent cannot see this if sysfs still names tsc. The guest with 6.1 gave up the clock at boot, and the
        module does not offer it. (If the module offers it, this is a trace like others.)"""
        said = self.folder / "tsc"
        said.write_text("tsc\n")
        clocks = pathlib.Path("/sys/devices/system/clocksource/clocksource0")
        for name in ("current_clocksource", "available_clocksource"):
            subprocess.run(["mount", "--bind", said, clocks / name], check=True)
            self.addCleanup(subprocess.run, ["umount", clocks / name], check=True)
        red = self.tenant("reds", "redsecret")
        self.record("reds")
        self.start_node(modules=self.modules)
        self.wait_condition("reds", "KernelTracing", "True")
        before = time.time_ns()
        red.run("cat", "/etc/hostname-of-red", stderr=subprocess.DEVNULL).wait()
        after = time.time_ns()
        counts = self.end("reds", KERNEL)
        self.assertEqual(counts["recorded"], counts["delivered"], counts)
        shown = subprocess.run(["babeltrace2", "--clock-seconds", self.folder / "relay/reds"], check=True,
                               capture_output=True, text=True).stdout
        times = re.findall(r"^\[(\d+)\.(\d{9})\].* syscall_entry_openat: .*hostname-of-red", shown, re.MULTILINE)
        self.assertEqual(len(times), 1, shown[-1000:])
        self.assertLess(before - MARGIN, int("".join(times[0])))
        self.assertLess(int("".join(times[0])), after + MARGIN)
        self.stop_node()

    def test_a_trace_without_memory_for_its_ring_gets_it_when_another_ends(self):
        """The rings of both would exceed a quarter of the guest's memory."""
        kernel = {"tracepoints": [{"name": "sched_process_exit"}], "statedump": False}
        how = {"buffer": {"size": "16Mi", "count": 8}}
        self.tenant("reds", "red")
        blue = self.tenant("blues", "blue")
        self.start_node(modules=self.modules)
        self.api.put("tracesessions", order("reds", self.relay, kernel, **how))
        self.wait_condition("reds", "KernelTracing", "True", "Recording")
        self.api.put("tracesessions", order("blues", self.relay, kernel, **how))
        self.assertIn("at most a quarter", self.wait_condition("blues", "KernelTracing", "False", "Refused"))
        self.end("reds", kernel, **how)
        self.wait_condition("blues", "KernelTracing", "True", "Recording")
        self.assertEqual(blue.run("true").wait(PATIENCE), 0)
        self.assertGreater(self.end("blues", kernel, **how)["delivered"], 0)
        self.stop_node()

    def test_pods_come_and_go(self):
        self.record("reds")
        self.start_node(modules=self.modules)
        self.wait_condition("reds", "KernelTracing", "Unknown", "WaitingForPods")
        first = self.tenant("reds", "first")
        self.wait_condition("reds", "KernelTracing", "True")
        # A process was there before it came to be selected.
        second = Tenant("reds", "second")
        sleeper = second.run("sleep", 1000)
        self.running.append(sleeper)
        self.wait_for(lambda: name_of(sleeper.pid) == "sleep")
        self.api.put("pods", second.object())
        self.wait_for(lambda: self.status("reds")["pods"].get("traced") == 2, "no second pod")
        for tenant in (first, second):
            tenant.run("cat", f"/etc/hostname-of-{tenant.name}", stderr=subprocess.DEVNULL).wait()
        self.api.put("pods", first.object(), "DELETED")
        self.wait_for(lambda: self.status("reds")["pods"].get("traced") == 1, "the pod stays")
        first.run("cat", "/etc/hostname-of-gone", stderr=subprocess.DEVNULL).wait()
        self.assertEqual(self.end("reds", KERNEL).get("lost", 0), 0)
        events = self.events("reds")
        told = [f["name"] for n, f in events if n == "lttng_statedump_process_state"]
        # The state of the second pod may be told while its next program is there.
        self.assertEqual(told.count("sleep"), 1, told)
        self.assertLessEqual(set(told), {"sleep", "sh", "cat"})
        read = {f["filename"] for n, f in events if n == "syscall_entry_openat"}
        self.assertLess({"/etc/hostname-of-first", "/etc/hostname-of-second"}, read)
        self.assertNotIn("/etc/hostname-of-gone", read)
        self.stop_node()

    def test_a_second_statedump_on_request(self):
        """A request is no other Trace: the channel goes on. An agent that came back obeys it,
        too."""
        kernel = {"syscalls": [{"name": "openat"}]}
        self.api.put("tracesessions", order("reds", self.relay, kernel))
        self.start_node(modules=self.modules)
        tenant = self.tenant("reds", "first")
        self.wait_condition("reds", "KernelTracing", "True", "Recording")
        sleeper = tenant.run("sleep", 1000)
        self.running.append(sleeper)
        self.wait_for(lambda: name_of(sleeper.pid) == "sleep")

        def told():
            # There may be none yet, or the relay may be writing one.
            with contextlib.suppress(AssertionError, subprocess.CalledProcessError):
                return [f["name"] for n, f in self.events("reds") if n == "lttng_statedump_process_state"]
            return []
        for again in (1, 2):
            self.api.put("tracesessions", order("reds", self.relay, {**kernel, "statedumpRequest": str(again)}))
            self.wait_for(lambda count=again: told().count("sleep") == count, told)
            self.kill_agent()
        self.assertEqual(len(list((self.folder / "relay/reds").rglob("metadata"))), 1)
        self.assertEqual(self.end("reds", kernel).get("lost", 0), 0)
        self.stop_node()

    def test_a_module_that_is_not_there_and_comes(self):
        """Makes each reason on the same node, one after the other."""
        self.tenant("reds", "first")
        self.record("reds")
        self.start_node(modules=self.folder / "nothing")
        said = self.wait_condition("reds", "KernelTracing", "False", "NoBuildForKernel")
        self.assertIn(RELEASE, said)
        self.wait_condition("reds", "Ready", "False", "NotPossible")
        self.stop_node()

        # A module of another kernel is passed over by what its file says; it is not tried.
        self.api.statuses.clear()
        other = self.folder / "other" / RELEASE
        other.mkdir(parents=True)
        changed = MODULE.read_bytes().replace(b"vermagic=" + RELEASE.encode()[:1],
                                              b"vermagic=9", 1)
        (other / "weft.ko").write_bytes(changed)
        self.start_node(modules=other.parent)
        said = self.wait_condition("reds", "KernelTracing", "False", "NoBuildForKernel")
        self.assertIn("was built for kernel 9", said)
        self.stop_node()

        self.api.statuses.clear()
        self.start_node(modules=f"{other.parent}:{self.modules}")
        self.wait_condition("reds", "KernelTracing", "True")
        # A module that is loaded already is used.
        self.stop_node()
        self.api.statuses.clear()
        self.start_node(modules=self.folder / "nothing")
        self.wait_condition("reds", "KernelTracing", "True")
        self.stop_node()

    def test_no_more_modules(self):
        """The last one: this cannot be turned off again."""
        unload()
        self.tenant("reds", "first")
        self.record("reds")
        pathlib.Path("/proc/sys/kernel/modules_disabled").write_text("1")
        self.start_node(modules=self.modules)
        self.wait_condition("reds", "KernelTracing", "False", "ModulesDisabled")
        self.stop_node()


def load_tests(loader, _, __):
    last = "test_no_more_modules"
    names = [name for name in loader.getTestCaseNames(Tenants) if name != last]
    return unittest.TestSuite(Tenants(name) for name in [*names, last])


if __name__ == "__main__":
    unittest.main()
