# SPDX-License-Identifier: GPL-2.0-only
"""DKMS accepts the folder that `make -C kmod dkms` makes. Its version is that of the module built
for the kernel WEFT_KERNEL. In the long form DKMS itself builds the module: Debian's DKMS, unpacked,
not installed."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from kmod.qemu import kernels
from kmod.qemu.settings import BUILD, TOP

KERNEL = os.environ["WEFT_KERNEL"]
SHOW = ('. "$1"; printf "%s\\n" "$PACKAGE_NAME" "$PACKAGE_VERSION" "${MAKE[0]}" '
        '"${BUILT_MODULE_LOCATION[0]}/${BUILT_MODULE_NAME[0]}" "${DEST_MODULE_LOCATION[0]}"')


def modinfo(module, name):
    return re.search(rb"\0" + name + rb"=([^\0 ]+)", module.read_bytes()).group(1).decode()


def run(*command, **more):
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


class DkmsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        run("make", "-s", "-C", TOP / "kmod", "dkms", f"DESTDIR={self.folder}")
        (self.sources,) = (self.folder / "usr/src").iterdir()
        self.version = modinfo(BUILD / KERNEL / "weft.ko", b"version")

    def test_the_version_is_the_modules(self):
        self.assertEqual(self.sources.name, f"weft-{self.version}")
        shown = run("bash", "-euc", SHOW, "bash", self.sources / "dkms.conf",
                    env={**os.environ, "kernel_source_dir": "/headers", "dkms_tree": "/tree"})
        self.assertEqual(shown.splitlines(), [
            "weft", self.version, f"make -C /headers M=/tree/weft/{self.version}/build/kmod modules",
            "kmod/weft", "/updates/dkms"])

    @unittest.skipUnless(os.environ.get("WEFT_LONG") == "1", "the long form builds it")
    def test_dkms_builds_it(self):
        (deb,) = kernels.Apt(self.folder / "apt", ("bookworm",)).download("dkms")
        run("dpkg-deb", "-x", deb, self.folder / "dkms")
        release, tree = kernels.release(KERNEL), self.folder / "tree"
        tree.mkdir()
        run(self.folder / "dkms/usr/sbin/dkms", "build", "-m", "weft", "-v", self.version, "-k", release,
            "--kernelsourcedir", (kernels.get(KERNEL) / "headers").resolve(), "--dkmstree", tree,
            "--sourcetree", self.sources.parent)
        (module,) = tree.glob(f"weft/{self.version}/{release}/*/module/weft.ko")
        self.assertEqual(modinfo(module, b"version"), self.version)
        self.assertEqual(modinfo(module, b"vermagic"), release)


if __name__ == "__main__":
    unittest.main()
