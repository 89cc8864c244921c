# SPDX-License-Identifier: Apache-2.0
"""A kernel refuses weft's module: it is locked down and also requires signatures, as its command
line (lockdown=integrity, module.sig_enforce=1) sets on machines with Secure Boot. The agent reports
which of the two it is, also in local mode, and all that needs no module works. Neither can be
undone, so each test goes on from where the one before it ended. The first one checks that nothing
else prevents loading."""

import os
import pathlib
import subprocess
import sys
import unittest

from tests.vm.node import NodeTest, order

MODULE = pathlib.Path(os.environ["WEFT_MODULE"])
RELEASE = os.uname().release
LOCKDOWN = pathlib.Path("/sys/kernel/security/lockdown")
LOADED = pathlib.Path("/sys/module/weft")
ENFORCE = pathlib.Path("/sys/module/module/parameters/sig_enforce")


def setUpModule():
    if not ENFORCE.exists():
        raise unittest.SkipTest("a kernel without signatures of modules")
    # Init systems do this.
    if not LOCKDOWN.exists():
        subprocess.run(["mount", "-t", "securityfs", "none", LOCKDOWN.parent], check=True)


class Refused(NodeTest):
    def modules(self):
        """Returns a folder with the file for this kernel."""
        modules = self.folder / "modules"
        (modules / RELEASE).mkdir(parents=True, exist_ok=True)
        file = modules / RELEASE / "weft.ko"
        if not file.exists():
            file.symlink_to(MODULE)
        return modules

    def record_here(self, *options, **how):
        """Records in local mode, by an agent that knows the folder."""
        return self.record(*options, env={**os.environ, "WEFT_KERNEL_MODULES": str(self.modules())}, **how)

    def assert_node_says(self, reason):
        """Checks the node's reason. There is no other reason: the module's file is there, for this kernel."""
        modules = self.modules()
        self.tenant("reds", "first")
        kernel = {"syscalls": [{"name": "openat"}]}
        self.api.put("tracesessions", order("reds", self.relay, kernel))
        self.start_node(modules=modules)
        said = self.wait_condition("reds", "KernelTracing", "False", reason)
        self.assertIn("(not signed)", said)
        self.assertIn("a key it trusts", said)
        self.wait_condition("reds", "Ready", "False", "NotPossible")
        self.wait_for(lambda: f'weft_kernel_tracing_ready{{reason="{reason}"}} 0' in self.metrics(),
                      "no metric says so")
        self.stop_node()

    def assert_user_space_is_recorded(self, reason):
        _, said = self.record_here("-e", "emitter:*", "--syscall", "getppid",
                                   program=self.emitter("--events", 100))
        self.assertIn(f"the kernel module weft.ko: {reason}: {self.modules()}", said)
        self.assertIn("nothing of the kernel is recorded", said)
        self.assertEqual(self.counts()["delivered"], self.emitted())

    def test_0_local_mode_loads_it(self):
        """Local mode loads the module if it is not loaded; if it finds none, it reports where it looked."""
        self.assertFalse(LOADED.exists())
        self.record_here("--syscall", "getppid",
                         program=[sys.executable, "-I", "-S", "-c", "import os; os.getppid()"])
        self.assertTrue(LOADED.exists())
        self.assertGreater(self.counts()["delivered"], 0)
        subprocess.run(["rmmod", "weft"], check=True)
        self.record("--syscall", "getppid", program=["true"], output="built")
        self.assertTrue(LOADED.exists(), "the module is found where ./dev kmod build leaves it")
        subprocess.run(["rmmod", "weft"], check=True)
        builds = pathlib.Path(os.environ["WEFT_MODULE"]).parents[1]
        subprocess.run(["mount", "-t", "tmpfs", "none", builds], check=True)
        try:
            _, said = self.record("--syscall", "getppid", program=["true"], output="none", status=121)
        finally:
            subprocess.run(["umount", builds], check=True)
        self.assertIn(f"NoBuildForKernel: there is no weft.ko for kernel {RELEASE}; looked for ", said)

    def test_1_locked_down(self):
        LOCKDOWN.write_text("integrity")
        self.assert_node_says("LockedDown")
        self.assert_user_space_is_recorded("LockedDown")

    def test_2_signatures_required(self):
        ENFORCE.write_text("1")
        self.assert_node_says("SignatureRequired")
        self.assert_user_space_is_recorded("SignatureRequired")


if __name__ == "__main__":
    unittest.main()
