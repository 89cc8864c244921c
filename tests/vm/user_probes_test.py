# SPDX-License-Identifier: Apache-2.0
"""Tests functions and USDT probes of programs that cannot be preloaded, in a guest: each call is
recorded, with its arguments and its result, and no call of another program. The tests use weft
record, and the containers of a cluster's node."""

import json
import os
import shutil
import subprocess
import sys
import unittest

from tests.local.weft_local import BUILD, WEFT, LocalTest
from tests.vm.node import PATIENCE, NodeTest, order

MODULE = os.environ["WEFT_MODULE"]
STATIC = BUILD / "tests/vm/user_probes_static"
DYNAMIC = BUILD / "tests/vm/user_probes_dynamic"
GO = BUILD / "tests/vm/user_probes_go"
COUNT = 200
TRACE = """
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: probes}}
spec:
  kernel:
    userProbes:
{0}
"""
ORDER = """
    - name: order
      object: {0}
      function: shop_order
      at: {1}
      args: [{{name: number, type: int32}}, {{name: name, type: string}}, {{name: share, type: double}},
             {{name: flag, type: uint8}}]
      returns: int32
"""


def setUpModule():
    subprocess.run(["insmod", MODULE], check=True)


def tearDownModule():
    subprocess.run(["rmmod", "weft"], check=True)


def number(value):
    """Returns the low 32 bits of a register, which the trace has as an address."""
    return (value if isinstance(value, int) else int(value, 0)) & 0xffffffff


class UserProbesTest(LocalTest):
    def events(self, output="trace"):
        done = subprocess.run([str(WEFT), "view", "--json", str(self.folder / output)],
                              capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def payloads(self, name):
        return [event["payload"] for event in self.events() if event["event"] == name]

    def rules(self, *rules):
        file = self.folder / "trace.yaml"
        file.write_text(TRACE.format("".join(rules)))
        return "-f", file

    def assert_all(self, count):
        """Checks that there are that many events beside the state dump's, that every one was
        delivered, and that babeltrace2 finds as many, without a warning."""
        state = sum(event["event"].startswith("lttng_statedump_") for event in self.events())
        counts = self.counts()
        self.assertEqual(sum(counts["discarded"].values()), 0, counts)
        self.assertEqual((counts["emitted"], counts["delivered"]), (state + count,) * 2, counts)
        lines, said = self.babeltrace()
        self.assertEqual((len(lines), said), (state + count, ""))

    def check_orders(self, program):
        out, err = self.record(*self.rules(ORDER.format(program, "both")), program=[program, COUNT])
        self.assertIn(f"called {COUNT} ", out)
        self.assertIn("share: floats are in registers that the kernel does not save", err)
        self.assert_all(2 * COUNT)
        entries = [(p["number"], p["name"], p["flag"]) for p in self.payloads("order_entry")]
        self.assertEqual(entries, [(i, "tea", i % 100) for i in range(COUNT)])
        exits = self.payloads("order_exit")
        self.assertEqual([p["ret"] for p in exits], [i - 2 for i in range(COUNT)])
        self.assertTrue(all(p["duration"] > 0 for p in exits))

    def test_a_static_program(self):
        self.check_orders(STATIC)

    def test_a_dynamic_program(self):
        self.check_orders(DYNAMIC)

    def test_a_setuid_program(self):
        """The loader preloads nothing into a setuid program."""
        program = self.folder / "setuid"
        shutil.copy(DYNAMIC, program)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        self.check_orders(program)

    def test_the_short_form(self):
        self.record("--function", f"{STATIC}:shop_depth", program=[STATIC, COUNT])
        self.assert_all(8 * COUNT)
        depths = [number(p["arg0"]) for p in self.payloads("shop_depth_entry")]
        self.assertEqual(depths, [3, 2, 1, 0] * COUNT)
        returned = [number(p["ret"]) for p in self.payloads("shop_depth_exit")]
        self.assertEqual(returned, [0, 1, 2, 3] * COUNT)

    @unittest.skipUnless(GO.exists(), "built without Go")
    def test_a_program_of_go(self):
        rule = """
    - name: order
      object: {0}
      function: main.(*shop).order
      at: both
      args: [{{name: shop, type: pointer}}, {{name: number, type: int64}}, {{name: name, type: string}},
             {{name: flag, type: uint8}}]
""".format(GO)
        out, err = self.record(*self.rules(rule), program=[GO, COUNT])
        self.assertIn(f"called {COUNT} sold {sum(i % 4 for i in range(COUNT))}", out)
        self.assertIn("returns in a program of Go cannot be probed", err)
        self.assert_all(COUNT)
        seen = [(p["number"], p["name"], p["flag"]) for p in self.payloads("order_entry")]
        self.assertEqual(seen, [(i, "tea"[:i % 4], int(i % 2 == 0)) for i in range(COUNT)])

    def test_a_usdt_probe(self):
        for program in (STATIC, DYNAMIC):
            out = subprocess.run([program, str(COUNT)], capture_output=True, text=True, check=True)
            self.assertEqual(out.stdout, f"called {COUNT} enabled 0\n")
            shutil.rmtree(self.folder / "trace", True)
            out, _ = self.record("--usdt", f"{program}:shop:order", program=[program, COUNT])
            self.assertEqual(out, f"called {COUNT} enabled {COUNT}\n")
            self.assert_all(COUNT)
            seen = [tuple(p[f"arg{i}"] for i in (0, 2, 3, 4)) for p in self.payloads("shop_order")]
            self.assertEqual(seen, [(i, -(i % 100), (1 << 40) + i, 77) for i in range(COUNT)])

    def test_a_usdt_probe_at_many_places(self):
        """Each is another event of that name."""
        _, said = self.record("--usdt", f"{DYNAMIC}:shop:many", program=[DYNAMIC, 1])
        self.assert_all(300)
        self.assertEqual(len({p["ip"] for p in self.payloads("shop_many")}), 300)
        self.assertNotIn("not recorded", said)

    def test_a_filter(self):
        rule = ORDER.format(STATIC, "entry") + f"      filter: number >= {COUNT - 5} && name == \"tea\"\n"
        self.record(*self.rules(rule), program=[STATIC, COUNT])
        self.assert_all(5)

    def test_another_process_of_the_program_gives_no_event(self):
        """Another process of the program beside the recorded one gives no event, and its probe stays off."""
        hold = self.folder / "hold"
        script = f"{STATIC} 1; touch {hold}; while [ -e {hold} ]; do sleep 0.05; done; {STATIC} 2"
        weft = self.start("--usdt", f"{STATIC}:shop:order", program=["sh", "-c", script])
        self.wait_for(hold.exists)
        out = subprocess.run([STATIC, str(COUNT)], capture_output=True, text=True, check=True)
        self.assertEqual(out.stdout, f"called {COUNT} enabled 0\n")
        hold.unlink()
        self.finish(weft)
        self.assert_all(3)

    def test_missing_files_and_functions(self):
        for option, text, why in (
                ("--function", f"{STATIC}:no_such", "it has no function 'no_such'"),
                ("--function", f"{self.folder}/none:f", "No such file or directory"),
                ("--function", f"{self.folder}:f", "no regular file"),
                ("--function", "/bin/sh/:f", "must be the absolute path of a file"),
                ("--function", f"{__file__}:f", "no ELF file"),
                ("--usdt", f"{STATIC}:shop:no_such", "it has no USDT probe 'shop:no_such'")):
            done = subprocess.run(self.command(option, text, program=["true"]), capture_output=True,
                                  text=True, check=False)
            self.assertNotEqual(done.returncode, 0, text)
            self.assertIn(why, done.stderr)


# A container's first process: there, it waits for a line, then becomes the program.
CONTAINED = """
import os, sys
root, *command = sys.argv[1:]
os.chroot(root)
os.chdir("/")
sys.stdin.readline()
os.execv(command[0], command)
"""
PROBES = {"statedump": False, "userProbes": [
    {"name": "order", "object": "/bin/shop", "function": "shop_order", "at": "both",
     "args": [{"name": "number", "type": "int32"}, {"name": "name", "type": "string"}]},
    {"name": "usdt", "object": "/bin/shop", "usdt": "shop:order"}]}
EVENTS = 3  # of one order
BUFFER = {"buffer": {"size": "1Mi", "count": 4}}


class ContainersTest(NodeTest):
    def setUp(self):
        super().setUp()
        # Containers' file systems are overlays, which do not stand upon one.
        self.layers = self.folder / "layers"
        self.layers.mkdir()
        self.mount("tmpfs", self.layers)
        for image in ("shop", "empty"):
            (self.layers / image / "bin").mkdir(parents=True)
        shutil.copy(STATIC, self.layers / "shop/bin/shop")

    def mount(self, kind, folder, *options):
        subprocess.run(["mount", "-t", kind, *options, "weft", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)

    def container(self, tenant, image="shop", program="/bin/shop"):
        """Starts its first process, which will make COUNT orders."""
        root, written, work = (self.layers / f"{tenant.name}-{what}" for what in ("root", "own", "work"))
        for folder in (root, written, work):
            folder.mkdir()
        self.mount("overlay", root, "-o",
                   f"lowerdir={self.layers / image},upperdir={written},workdir={work}")
        process = tenant.run(sys.executable, "-I", "-S", "-c", CONTAINED, root, program, COUNT,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running.append(process)
        self.wait_for(lambda: os.readlink(f"/proc/{process.pid}/root") == str(root))
        return process

    def trace(self, namespace, kernel, **more):
        self.api.put("tracesessions", order(namespace, self.relay, kernel, **BUFFER, **more))

    def end_trace(self, namespace, kernel, **more):
        counts = self.end(namespace, kernel, **BUFFER, **more)
        events = self.events(namespace)
        self.assertEqual(counts.get("lost", 0), 0, counts)
        self.assertEqual((counts["recorded"], counts["delivered"]), (len(events),) * 2, counts)
        return events

    def let_run(self, *processes):
        """Lets the processes run, and returns the output of each."""
        return [process.communicate("\n", timeout=PATIENCE)[0] for process in processes]

    def assert_orders(self, events, runs):
        """Checks that the events are `runs` complete runs of the program."""
        self.assertEqual(len(events), runs * EVENTS * COUNT)
        expected = sorted(list(range(COUNT)) * runs)
        entries = [(int(f["number"]), f["name"]) for n, f in events if n == "order_entry"]
        self.assertEqual(sorted(entries), [(i, "tea") for i in expected])
        self.assertEqual(sorted(int(f["arg0"]) for n, f in events if n == "usdt"), expected)
        self.assertEqual(sum(n == "order_exit" for n, _ in events), runs * COUNT)

    def test_each_call_once_in_all_containers_of_the_namespace(self):
        """Two of them have one file, since they have one image; so has another namespace's."""
        first, second = (self.container(self.tenant("reds", name)) for name in ("first", "second"))
        other = self.container(self.tenant("blues", "other"))
        self.container(self.tenant("reds", "empty"), image="empty")
        self.trace("reds", PROBES)
        self.start_node()
        self.wait_condition("reds", "Ready", "True", "Recording")
        self.wait_condition("reds", "KernelTracing", "True", "Recording")
        said = self.let_run(first, second, other)
        self.assertEqual(said, [f"called {COUNT} enabled {COUNT}\n"] * 2 + [f"called {COUNT} enabled 0\n"])
        self.assert_orders(self.end_trace("reds", PROBES), runs=2)
        self.stop_node()

    def test_a_file_that_appears_later(self):
        tenant = self.tenant("reds", "late")
        process = self.container(tenant, image="empty")
        # The node has this one, and this container has not its root.
        self.running.append(self.tenant("reds", "rootless").run("sleep", 1000))
        probes = {**PROBES, "userProbes": [*PROBES["userProbes"],
                                           {"name": "nodes", "object": str(STATIC), "function": "shop_order"}]}
        self.trace("reds", probes)
        self.start_node()
        self.wait_condition("reds", "Ready", "True", "Recording")
        self.wait_condition("reds", "KernelTracing", "True", "RecordingInPart")

        def said():
            return self.condition("reds", "KernelTracing")[2]
        for rule, file in (("order", "/bin/shop"), ("nodes", STATIC)):
            told = f'late/main: probe "{rule}": {file}: No such file or directory'
            self.wait_for(lambda told=told: told in said(), said)
        shutil.copy(STATIC, self.layers / "late-root/bin/shop")
        self.wait_for(lambda: "/bin/shop" not in said() and str(STATIC) in said(), said)
        self.assertEqual(self.let_run(process), [f"called {COUNT} enabled {COUNT}\n"])
        self.assert_orders(self.end_trace("reds", probes), runs=1)
        self.stop_node()

    def test_a_file_system_that_never_answers(self):
        """The tenant that the file system belongs to waits for it, and no other tenant."""
        self.container(self.tenant("reds", "stuck"), image="empty")
        if not os.path.exists("/dev/fuse"):
            subprocess.run(["modprobe", "fuse"], check=True)
        server = os.open("/dev/fuse", os.O_RDWR)
        self.addCleanup(os.close, server)
        folder = self.layers / "stuck-root/bin"
        subprocess.run(["mount", "-i", "-t", "fuse", "-o", f"fd={server},rootmode=40000,user_id=0,group_id=0",
                        "weft", folder], check=True, pass_fds=[server])
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        other = self.container(self.tenant("blues", "other"))
        for namespace in ("reds", "blues"):
            self.trace(namespace, PROBES)
        self.start_node()
        self.wait_condition("blues", "Ready", "True", "Recording")
        self.assertEqual(self.let_run(other), [f"called {COUNT} enabled {COUNT}\n"])
        self.assert_orders(self.end_trace("blues", PROBES), runs=1)
        self.assertNotEqual(self.condition("reds", "Ready")[0], "True")
        self.stop_node()

    def test_a_cluster_wide_session_means_files_of_the_node(self):
        probes = {**PROBES, "userProbes": [{**rule, "object": str(STATIC)} for rule in PROBES["userProbes"]]}
        self.trace("weft", probes, cluster_wide=True)
        self.start_node()
        self.wait_condition("weft", "Ready", "True", "Recording")
        said = subprocess.run([STATIC, str(COUNT)], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, f"called {COUNT} enabled {COUNT}\n")
        self.assert_orders(self.end_trace("weft", probes, cluster_wide=True), runs=1)
        self.stop_node()

    def test_an_agent_that_comes_back_and_a_container_that_comes_later(self):
        first = self.container(self.tenant("reds", "first"))
        self.trace("reds", PROBES)
        self.start_node()
        self.wait_condition("reds", "Ready", "True", "Recording")
        self.kill_agent()
        second = self.tenant("reds", "second")
        self.wait_for(lambda: self.status("reds")["pods"].get("traced") == 2, "no second pod")
        self.assertEqual(self.let_run(first, self.container(second)),
                         [f"called {COUNT} enabled {COUNT}\n"] * 2)
        self.assert_orders(self.end_trace("reds", PROBES), runs=2)
        self.stop_node()


if __name__ == "__main__":
    unittest.main()
