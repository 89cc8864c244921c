# SPDX-License-Identifier: Apache-2.0
"""A kernel that checks the type of each indirect call (kCFI) panics in a guest if a tracepoint
calls a probe that serves all of them. If tracepoints or system calls are requested, weft record and
the agent report this, and they record the rest: kernel probes and the state dump. User probes have
a test of their own (user_probes_test.py)."""

import json
import sys
import unittest

from tests.local.weft_local import LocalTest
from tests.vm.node import NodeTest, load_module, order

COUNT = 50
STATE = "lttng_statedump_"
REASON = "this kernel checks the type of indirect calls (kCFI)"
CANNOT = 121  # weft record's status
PROBES = [{"name": "asked", "symbol": "__x64_sys_getppid", "at": "both"}]
CALLS = f"import os\nfor i in range({COUNT}): parent = os.getppid()\nprint(parent)"
TRACE = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: t}}
spec:
  kernel: {0}
"""


class RecordTest(LocalTest):
    def setUp(self):
        super().setUp()
        load_module(self)

    def counted(self):
        """Returns how many events there are of each name, except for the statedump's; and how many
        of those."""
        names = [event["event"] for event in self.view()]
        state = sum(name.startswith(STATE) for name in names)
        counts = self.counts()
        self.assertEqual(sum(counts["discarded"].values()), 0, counts)
        self.assertEqual((counts["emitted"], counts["delivered"]), (len(names),) * 2, counts)
        return {name: names.count(name) for name in names if not name.startswith(STATE)}, state

    def trace(self, **kernel):
        file = self.folder / "trace.yaml"
        file.write_text(TRACE.format(json.dumps(kernel)))
        return "-f", file

    def test_tracepoints_and_system_calls_alone_are_refused_with_the_reason(self):
        for option, name, field in (("--kernel", "sched_*", "tracepoints"), ("--syscall", "openat", "syscalls")):
            _, err = self.record(option, name, program=["true"], status=CANNOT)
            self.assertIn(f"spec.kernel.{field}: {REASON}", err)
            self.assertIn("what works: probes, userProbes, the statedump", err)

    def test_beside_them_the_rest_is_recorded(self):
        _, err = self.record(*self.trace(syscalls=[{"name": "getppid"}], probes=PROBES),
                             program=[sys.executable, "-I", "-S", "-c", CALLS])
        self.assertIn(f"spec.kernel.syscalls: {REASON}", err)
        events, state = self.counted()
        self.assertEqual(events, {"asked_entry": COUNT, "asked_exit": COUNT})
        self.assertGreater(state, 2)

    def test_a_probe_at_the_return(self):
        files = f"import os\nprint([os.open('/dev/null', os.O_RDONLY) for i in range({COUNT})])"
        probes = [{"name": "opened", "symbol": "do_sys_openat2", "at": "return"}]
        out, _ = self.record(*self.trace(probes=probes, statedump=False),
                             program=[sys.executable, "-I", "-S", "-c", files])
        returned = [event["payload"]["ret"] for event in self.view()]
        self.assertEqual(returned[-COUNT:], json.loads(out))


class AgentTest(NodeTest):
    def test_the_condition_has_the_reason(self):
        load_module(self)
        tenant = self.tenant("reds", "first")
        refused = {"syscalls": [{"name": "getppid"}], "statedump": False}
        mixed = {**refused, "probes": PROBES}
        self.tenant("blues", "other")
        self.api.put("tracesessions", order("blues", self.relay, refused))
        self.api.put("tracesessions", order("reds", self.relay, mixed))
        self.start_node()
        self.assertIn(REASON, self.wait_condition("blues", "KernelTracing", "False"))
        self.assertIn(REASON, self.wait_condition("reds", "KernelTracing", "True", "RecordingInPart"))
        tenant.run(sys.executable, "-I", "-S", "-c", CALLS).wait()
        self.end("reds", mixed)
        names = [name for name, _ in self.events("reds")]
        self.assertEqual(sorted(names), ["asked_entry"] * COUNT + ["asked_exit"] * COUNT)
        self.stop_node()


if __name__ == "__main__":
    unittest.main()
