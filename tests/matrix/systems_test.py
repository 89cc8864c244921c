# SPDX-License-Identifier: Apache-2.0
"""Records functions in programs that run with the C library, C++ library and unwinder of another system,
preloaded and attached: counts are those of the program itself. Programs are linked with that system's
files (scripts/debian_root.sh) and use them where they lie. Needs root, as tests/local/attach_test.py."""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

from tests.local import attach_test
from tests.local.weft_local import PATIENCE

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCES = TOP / "tests" / "local"
PACKAGES = ("libc6", "libc6-dev", "libgcc-s1", "libstdc++6")
THREADS = 10  # that functions_throws.cc makes
KERNEL_HEADERS = ("-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu")


def build(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=PATIENCE)


class OfSystem:
    suite = ""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root")
        got = subprocess.run([TOP / "scripts" / "debian_root.sh", cls.suite, *PACKAGES], text=True,
                             capture_output=True, check=False)
        if got.returncode != 0:
            raise unittest.SkipTest("the libraries of another system cannot be had here")
        folder = tempfile.TemporaryDirectory(prefix="weft-systems-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.programs = pathlib.Path(folder.name)
        cls.programs.chmod(0o755)
        root = pathlib.Path(got.stdout.strip())
        libraries = root / "usr/lib/x86_64-linux-gnu"
        loader = (root / "lib64/ld-linux-x86-64.so.2").resolve()
        link = (f"--sysroot={root}", f"-B{libraries}", f"-L{libraries}", f"-L{root}/lib/x86_64-linux-gnu",
                f"-Wl,--dynamic-linker={loader}", "-Wl,--disable-new-dtags",
                f"-Wl,-rpath={root}/lib/x86_64-linux-gnu:{libraries}", "-pthread")
        cls.attached = cls.programs / "local_attached_other"
        build("gcc", "-std=gnu11", "-O1", "-I", TOP, SOURCES / "attached.c", *KERNEL_HEADERS, *link, "-o", cls.attached)
        cls.throws = cls.programs / "throws"
        build("g++", "-std=c++20", "-O2", "-c", SOURCES / "functions_throws.cc", "-o", cls.programs / "throws.o")
        build("gcc", cls.programs / "throws.o", libraries / "libstdc++.so.6", "-lm", "-lgcc_s", *link, "-o", cls.throws)

    def run_program(self, *words, program=None):
        return super().run_program(*words, program=program or self.attached)

    def test_attached(self):
        self.check_functions("threads", "timer", "busy")

    def test_attached_with_exceptions_in_flight(self):
        self.check_throws(self.throws)

    def test_preloaded_with_functions_of_the_c_library(self):
        trace = self.functions()
        trace[1].write_text(attach_test.THROWN.replace("PROGRAM", self.throws.name) + "      - set: pthread\n")
        self.record(*trace, program=(self.throws, 70))
        calls = collections.Counter(e["event"] for e in self.view())
        for name, count in (("pthread_create_call", THREADS), ("pthread_join_call", THREADS),
                            ("shop::Deep(int)_exit", 280), ("shop::Ended(void*)_exit", THREADS),
                            ("shop::Price(int)_call", 70)):
            self.assertEqual(calls["function:" + name], count, name)


class Debian11(OfSystem, attach_test.AttachTest):
    """glibc 2.31: libc, libpthread and libdl are files with a version, unwinders ask dl_iterate_phdr."""
    suite = "bullseye"


class Debian13(OfSystem, attach_test.AttachTest):
    """glibc 2.41, and libgcc of gcc 14."""
    suite = "trixie"


if __name__ == "__main__":
    unittest.main()
