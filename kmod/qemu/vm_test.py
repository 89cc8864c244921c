# SPDX-License-Identifier: GPL-2.0-only
"""Tests ./dev vm run itself: it returns the command's status, and no complaint of a guest's kernel
goes unseen.

The first part looks at the checker alone; the second starts guests of the kernel that WEFT_KERNEL names."""

import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import unittest

from kmod.qemu import guest
from kmod.qemu.settings import HERE, KERNEL_COMPLAINED, NOT_STARTED, TIMED_OUT

KERNEL = os.environ["WEFT_KERNEL"]
PATIENCE = 100  # seconds: an end may take so long on a busy machine

# Complaints of each kind, as kernels printed them or as their sources have them.
COMPLAINTS = [
    "[    5.1] Kernel panic - not syncing: sysrq triggered crash",
    "[    5.1] Oops: 0002 [#1] PREEMPT SMP NOPTI",
    "[    5.1] Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
    "[    5.1] WARNING: CPU: 1 PID: 77 at kernel/workqueue.c:1999 worker_thread+0x2/0x3",
    "[    5.1] WARNING: possible circular locking dependency detected",
    "[    5.1] WARNING: suspicious RCU usage",
    "[    5.1] WARNING: inconsistent lock state",
    "[    5.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "[    5.1] BUG: sleeping function called from invalid context at mm/slab.h:1",
    "[    5.1] BUG: scheduling while atomic: kmod_test/77/0x00000002",
    "[    5.1] BUG: KASAN: slab-use-after-free in weft_event_end+0x1/0x2 [weft]",
    "[    5.1] UBSAN: array-index-out-of-bounds in kmod/ring.c:12:3",
    "[    5.1] general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
    "[    5.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
    "[    5.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "[    5.1] watchdog: BUG: soft lockup - CPU#0 stuck for 134s! [kmod_test:77]",
    "[    5.1] watchdog: Watchdog detected hard LOCKUP on cpu 0",
    "[    5.1] INFO: task kmod_test:77 blocked for more than 120 seconds.",
    "[    5.1] refcount_t: underflow; use-after-free.",
    "[    5.1] list_del corruption. prev->next should be 1, but was 2",
    "[    5.1] INFO: trying to register non-static key.",
    "unreferenced object 0xffff8880 (size 64):",
    "[    5.1] weft: a session stopped: internal contradiction 1",
    "[    5.1] weft: self-test: line 100: write_one(ring)",
]
HARMLESS = [
    "[    0.0] Linux version 6.1.0 (gcc-12) #1 SMP PREEMPT_DYNAMIC Debian",
    "[    0.0] Command line: console=ttyS0 oops=panic panic_on_warn=1 softlockup_panic=1",
    "[    1.0] weft: loading out-of-tree module taints kernel.",
    "[    1.0] sysrq: Show backtrace of all active CPUs",
    "[    1.0] NMI backtrace for cpu 1",
    "[    1.0] warning: `kmod_test' uses wireless extensions",
    "[    1.0] kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
]


class CheckerTest(unittest.TestCase):
    """Compares the console's lines with the status that the run returns."""

    def examine(self, lines, status="0", in_time=True):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            (work / "console").write_text("\n".join(lines), encoding="utf-8")
            if status is not None:
                (work / "status").write_text(status, encoding="utf-8")
            return guest.examine(in_time, work, work / "console")

    def test_every_kind_of_complaint_fails_a_run_that_went_well(self):
        for line in COMPLAINTS:
            with self.subTest(line):
                result = self.examine([*HARMLESS, line, *HARMLESS])
                self.assertEqual(result.status, KERNEL_COMPLAINED)
                self.assertEqual(result.complaints, [line])

    def test_harmless_lines_fail_no_run(self):
        result = self.examine(HARMLESS, status="7")
        self.assertEqual(result.status, 7)
        self.assertEqual(result.complaints, [])

    def test_what_is_allowed_is_no_complaint_and_nothing_else(self):
        expected, other = COMPLAINTS[-2:]
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            (work / "console").write_text(f"{expected}\n{other}\n", encoding="utf-8")
            found = guest.examine(True, work, work / "console", "a session stopped").complaints
            self.assertEqual(found, [other])

    def test_bytes_that_are_no_text_hide_nothing(self):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            (work / "console").write_bytes(b"\xff\xfe\n\xc3[ 1.0] BUG: \xff\n")
            (work / "status").write_text("0", encoding="utf-8")
            self.assertEqual(guest.examine(True, work, work / "console").status, KERNEL_COMPLAINED)

    def test_no_status_and_no_console(self):
        self.assertEqual(self.examine(HARMLESS, status=None).status, KERNEL_COMPLAINED)
        self.assertEqual(self.examine(HARMLESS, in_time=False).status, TIMED_OUT)
        with tempfile.TemporaryDirectory() as work:
            missing = pathlib.Path(work) / "console"
            self.assertEqual(guest.examine(True, pathlib.Path(work), missing).status,
                             KERNEL_COMPLAINED)


class GuestTest(unittest.TestCase):
    """Tests that start guests, a few seconds each."""

    def guest_command(self, *command, options=()):
        return [sys.executable, "-B", HERE / "vm.py", "run", KERNEL, "--smp", "1", *options, "--", *command]

    def run_guest(self, *command, options=(), environment=None):
        return subprocess.run(
            self.guest_command(*command, options=options),
            env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False)

    def test_output_files_and_status_are_the_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "a new, folder"
            console = pathlib.Path(folder) / "console"
            ran = self.run_guest(
                "sh", "-c", "echo hello; echo more >&2; uname -r >/out/release; "
                "cat /proc/sys/kernel/panic_on_warn /proc/sys/kernel/panic_on_oops; exit 7",
                options=["--out", out, "--console", console])
            self.assertEqual((ran.returncode, ran.stdout), (7, "hello\nmore\n1\n1\n"), ran.stderr)
            self.assertEqual((out / "release").read_text(encoding="utf-8").split(".")[:2],
                             KERNEL.split(".")[:2])
            self.assertIn("Linux version", console.read_text(encoding="utf-8", errors="replace"))

    def test_all_its_processors_are_there_for_the_command(self):
        ran = self.run_guest("cat", "/sys/devices/system/cpu/online", options=["--smp", "3"])
        self.assertEqual((ran.returncode, ran.stdout), (0, "0-2\n"), ran.stderr)

    def test_a_program_that_is_not_there_and_one_that_is_killed(self):
        ran = self.run_guest("sh", "-c", "no-such-program; test $? = 127 && kill -SEGV $$")
        self.assertEqual(ran.returncode, 128 + 11, ran.stderr)
        ran = self.run_guest("/no/such/program")
        self.assertEqual(ran.returncode, 127, ran.stderr)
        self.assertIn("/no/such/program: No such file", ran.stdout)

    def test_a_warning_fails_a_command_that_went_well(self):
        ran = self.run_guest("sh", "-c", "echo 'WARNING: a planted one' >/dev/kmsg; echo went on")
        self.assertEqual(ran.returncode, KERNEL_COMPLAINED)
        self.assertEqual(ran.stdout, "went on\n")
        self.assertIn("WARNING: a planted one", ran.stderr)

    def test_a_crash_ends_the_guest(self):
        ran = self.run_guest("sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(ran.returncode, KERNEL_COMPLAINED)
        self.assertIn("Kernel panic", ran.stderr)
        self.assertIn("status 125, after the command began", ran.stderr)
        self.assertNotIn("anew", ran.stderr)

    def test_a_guest_that_does_not_boot_is_started_once_more(self):
        ran = self.run_guest("true", options=["--append", "rdinit=/no/such/program"])
        self.assertEqual(ran.returncode, KERNEL_COMPLAINED)
        self.assertEqual(ran.stderr.count("starting it anew"), 1, ran.stderr)
        self.assertIn("status 125, before the command began", ran.stderr)

    def test_a_guest_that_ends_silently(self):
        ran = self.run_guest("sh", "-c", "echo o >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(ran.returncode, KERNEL_COMPLAINED)

    def test_a_command_that_hangs_is_ended(self):
        ran = self.run_guest("sh", "-c", "echo begins; sleep 100000", options=["--timeout", "30"])
        self.assertEqual(ran.returncode, TIMED_OUT)
        self.assertEqual(ran.stdout, "begins\n")
        self.assertIn("status 124", ran.stderr)
        self.assertEqual(len(re.findall(r"^ +CPU#0\n +RIP=\w{16} ", ran.stderr, re.MULTILINE)), 2, ran.stderr)

    def test_a_guest_ends_with_its_starter(self):
        """The starter's output arrives as a whole, because the starter ends only after the
        emulator."""
        command = self.guest_command("sh", "-c", "echo begins; sleep 100000",
                                     options=["--with-parent", "--timeout", "200"])
        starter = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        with subprocess.Popen([sys.executable, "-c", starter, *command], stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"begins\n")
            process.kill()
            self.assertTrue(select.select([process.stdout], [], [], PATIENCE)[0], "it goes on")
            self.assertEqual(process.stdout.read(), b"")

    def test_without_an_emulator_nothing_is_started(self):
        with tempfile.TemporaryDirectory() as empty:
            ran = self.run_guest("true", environment={"PATH": empty})
        self.assertEqual(ran.returncode, NOT_STARTED)
        self.assertIn("qemu-system-x86_64", ran.stderr)


if __name__ == "__main__":
    unittest.main()
