# SPDX-License-Identifier: Apache-2.0
"""weft-kmod, the image of modules alone: which modules are in it, its name, and what it copies. Uses the modules that
./dev kmod build made."""

import io
import json
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

from deploy.images import images

KERNELS = ("6.1", "6.12")
# What the OCI's distribution-spec allows behind the colon.
NAME = re.compile(r"localhost/weft-kmod:\w[\w.-]{0,127}", re.ASCII)


def module(kernel):
    """(RELEASE/weft.ko, its bytes)"""
    file = images.MODULES / kernel / "weft.ko"
    return f"{images.release_of(file)}/weft.ko", file.read_bytes()


class ModuleImage(unittest.TestCase):
    def copied(self, image):
        """What its entry point leaves in the node's folder, run by this machine's busybox. {name: bytes}"""
        with tempfile.TemporaryDirectory(prefix="weft-images-test-") as folder:
            return self.copied_in(pathlib.Path(folder), image)

    def copied_in(self, folder, image):
        image.write(folder / "image.tar")
        with tarfile.open(folder / "image.tar") as whole:
            names = json.load(whole.extractfile("manifest.json"))[0]
            program, *words = json.load(whole.extractfile(names["Config"]))["config"]["Entrypoint"]
            layer = io.BytesIO(whole.extractfile(names["Layers"][0]).read())
        root, target = folder / "root", folder / "root/modules"
        target.mkdir(parents=True)
        with tarfile.open(fileobj=layer) as files:
            self.assertIn(program.strip("/"), files.getnames())
            for file in files:
                if file.isfile() and file.name.startswith("usr/share/"):
                    path = root / file.name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(files.extractfile(file).read())
        subprocess.run(["/bin/busybox", *(f"{root}{word}" if word[0] == "/" else word for word in words)],
                       check=True)
        return {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}

    def test_of_one_kernel(self):
        for kernel in KERNELS:
            with self.subTest(kernel):
                image = images.make(f"weft-kmod/{kernel}")
                name, content = module(kernel)
                release = name.partition("/")[0]
                self.assertEqual(image.name, f"localhost/weft-kmod:dev-{release.replace('+', '_')}")
                self.assertTrue(NAME.fullmatch(image.name), image.name)
                self.assertEqual(self.copied(image), {name: content})

    def test_of_all_kernels(self):
        image = images.make("weft-kmod")
        self.assertEqual(image.name, "localhost/weft-kmod:dev")
        copied = self.copied(image)
        for kernel in KERNELS:
            name, content = module(kernel)
            self.assertEqual(copied[name], content)

    def test_of_a_kernel_without_a_module(self):
        with self.assertRaisesRegex(images.CannotPack, "build/kmod/0.0/weft.ko"):
            images.make("weft-kmod/0.0")


if __name__ == "__main__":
    unittest.main()
