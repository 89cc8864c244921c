# SPDX-License-Identifier: Apache-2.0
"""Tests tracepoints of kernel modules (types in a BTF of their own, on top of the kernel's) in a
guest: ext4's, with a file system in a file. Their values are those that the file system itself
reports. The module stays as long as its tracepoints are used, and one that does not exist is
refused by name."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import unittest

from tests.local.weft_local import WEFT, LocalTest
from tests.vm.node import NodeTest, children_of, load_module, name_of, order

MODULE = os.environ["WEFT_MODULE"]
FILES = 20
# Tells what it made: for each file its inode's number, its folder's, its mode, its device's, and its bytes.
PROGRAM = """
import json, os, sys
made = []
for i in range({files}):
    folder = "{where}/folder%d" % i
    path = folder + "/file"
    os.mkdir(folder)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o640)
    os.write(fd, b"x" * (i + 1))
    os.fsync(fd)
    of = os.fstat(fd)
    os.close(fd)
    made.append([of.st_ino, os.stat(folder).st_ino, of.st_mode, of.st_dev, of.st_size])
    os.unlink(path)
json.dump(made, open("{report}", "w"))
"""


def loaded(module):
    return pathlib.Path(f"/sys/module/{module}").exists()


def device(number):
    """Converts the kernel's own form of a device number to that of stat."""
    return os.makedev(number >> 20, number & 0xfffff)


class ModulesTest(LocalTest):
    def setUp(self):
        super().setUp()
        load_module(self)

    def mount(self):
        """Mounts an ext4 file system of its own. Its modules are unloaded with the test."""
        image, place = self.folder / "image", self.folder / "mounted"
        place.mkdir()
        with open(image, "wb") as file:
            file.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        for module in ("loop", "ext4"):
            subprocess.run(["modprobe", module], check=True)
        self.addCleanup(subprocess.run, ["modprobe", "-r", "ext4", "loop"], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True)
        self.addCleanup(self.unmount)
        return place

    def hide_types(self):
        """Hides types of modules: ext4's cannot be read, and no other has any."""
        btf = pathlib.Path("/sys/kernel/btf")
        types = self.folder / "btf"
        types.mkdir()
        shutil.copy(btf / "vmlinux", types)
        (types / "ext4").touch()
        subprocess.run(["mount", "--bind", types, btf], check=True)
        self.addCleanup(subprocess.run, ["umount", btf], check=True)

    def unmount(self):
        place = self.folder / "mounted"
        if place.is_mount():
            subprocess.run(["umount", place], check=True)

    def files(self, where):
        return [sys.executable, "-I", "-S", "-c",
                PROGRAM.format(files=FILES, where=where, report=self.report)]

    def payloads(self, name, output="trace"):
        done = subprocess.run([WEFT, "view", "--json", self.folder / output], capture_output=True, text=True,
                              check=True)
        return [e["payload"] for e in map(json.loads, done.stdout.splitlines()) if e["event"] == name]

    def test_values(self):
        place = self.mount()
        self.record("--kernel", "ext4_allocate_inode", "--kernel", "ext4_sync_file_enter", "--kernel",
                    "ext4_unlink_enter", program=self.files(place))
        made = json.loads(self.report.read_text())
        self.assertEqual(len(made), FILES)
        files = [p for p in self.payloads("ext4_allocate_inode") if stat.S_ISREG(p["mode"])]
        self.assertEqual([[p["ino"], p["dir"], p["mode"], device(p["dev"])] for p in files],
                         [of[:4] for of in made])
        self.assertEqual([[p["ino"], p["parent"], p["datasync"]] for p in self.payloads("ext4_sync_file_enter")],
                         [[*of[:2], 0] for of in made])
        self.assertEqual([[p["ino"], p["parent"], p["size"]] for p in self.payloads("ext4_unlink_enter")],
                         [[*of[:2], of[4]] for of in made])
        lines, said = self.babeltrace()
        self.assertEqual((len(lines), said), (self.counts()["delivered"], ""))

    def test_a_module_stays_while_it_is_recorded(self):
        """When no file system is mounted any more, only the session holds the module; after the
        session ends it is unloaded (clean-up)."""
        self.mount()
        hold = self.folder / "hold"
        hold.touch()
        weft = self.start("--kernel", "ext4_unlink_enter",
                          program=["sh", "-c", f"while [ -e {hold} ]; do sleep 0.05; done"])
        self.wait_for(lambda: "weft-agent" in self.session_processes(weft))
        self.wait_for(lambda: name_of_child(weft.pid) == "sh")
        self.unmount()
        done = subprocess.run(["rmmod", "ext4"], capture_output=True, text=True, check=False)
        self.assertIn("in use", done.stderr)
        self.assertEqual(pathlib.Path("/sys/module/ext4/refcnt").read_text(), "1\n")
        hold.unlink()
        self.finish(weft)

    def test_a_module_that_is_not_there(self):
        """A rule for it is refused, and does not load the module. Once it is loaded, the next session records it."""
        self.assertFalse(loaded("ext4"))
        _, said = self.record("--kernel", "ext4_unlink_enter", program=["true"], status=121)
        self.assertIn('"ext4_unlink_enter"', said)
        self.assertFalse(loaded("ext4"))
        place = self.mount()
        self.record("--kernel", "ext4_unlink_enter", output="later", program=self.files(place))
        self.assertEqual(len(self.payloads("ext4_unlink_enter", "later")), FILES)

    def test_a_module_whose_types_are_not_to_be_had(self):
        """The refused name may be one of its tracepoints, so the module is named; jbd2 is ext4's
        journal."""
        self.mount()
        self.hide_types()
        _, said = self.record("--kernel", "ext4_unlink_enter", program=["true"], status=121)
        self.assertIn('"ext4_unlink_enter": this kernel has none of that name; ', said)
        self.assertIn('module "jbd2" has tracepoints, but was built without types (BTF)', said)
        self.assertIn('the types of module "ext4" cannot be read: /sys/kernel/btf/ext4: ', said)


def name_of_child(pid):
    """Returns the name of the program after it was executed."""
    return next((name for name in map(name_of, children_of(pid)) if name != "weft-keeper"), "")


class NodeModulesTest(NodeTest):
    """The agent lives longer than that."""

    def test_a_module_that_comes(self):
        self.addCleanup(subprocess.run, ["modprobe", "-r", "ext4"], check=True)
        self.addCleanup(subprocess.run, ["rmmod", "weft"], check=True)
        release = self.folder / "modules" / os.uname().release
        release.mkdir(parents=True)
        (release / "weft.ko").symlink_to(MODULE)
        kernel = {"tracepoints": [{"name": "ext4_unlink_enter"}], "statedump": False}
        self.tenant("reds", "red")
        self.tenant("blues", "blue")
        self.api.put("tracesessions", order("reds", self.relay, kernel))
        self.start_node(modules=release.parent)
        said = self.wait_condition("reds", "KernelTracing", "False", "NothingToRecord")
        self.assertIn('"ext4_unlink_enter"', said)
        subprocess.run(["modprobe", "ext4"], check=True)
        self.api.put("tracesessions", order("blues", self.relay, kernel))
        self.wait_condition("blues", "KernelTracing", "True", "Recording")
        done = subprocess.run(["rmmod", "ext4"], capture_output=True, text=True, check=False)
        self.assertIn("in use", done.stderr)
        self.end("blues", kernel)
        self.stop_node()


if __name__ == "__main__":
    unittest.main()
