#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""./dev kmod build [KERNEL...]: weft.ko for each kernel, as build/kmod/KERNEL/weft.ko, and beside it contradict.ko,
which its tests load.

kbuild writes beside its sources. So kmod/ and what it shares of lib/ are mirrored into
build/kmod/KERNEL/source first (only what changed, so that make sees what is new), and built there:
paths like $(src)/../lib/event hold in both places.
"""

import argparse
import shutil
import subprocess
import sys

import kernels
from settings import BUILD, BUILT_KERNELS, COMPILER, KERNELS, TOP

MIRRORED = {"kmod": ("*.c", "*.h", "*.sh", "Kbuild", "Makefile"), "lib": ("*.c", "*.h")}
LEFT_OUT = ("kmod/qemu", "kmod/tests")  # these run in user space
TEST_MODULE = "kmod/contradict"
MODULES = {"weft": "kmod", "contradict": TEST_MODULE}


def sources():
    """Of all modules."""
    for folder, patterns in MIRRORED.items():
        for pattern in patterns:
            for path in (TOP / folder).rglob(pattern):
                name = path.relative_to(TOP)
                if not str(name).startswith(LEFT_OUT):
                    yield name


def mirror(target):
    wanted = set(sources())
    for name in wanted:
        place = target / name
        data = (TOP / name).read_bytes()
        if not place.exists() or place.read_bytes() != data:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            shutil.copymode(TOP / name, place)
    record = target / "mirrored"
    before = record.read_text().split("\n") if record.exists() else []
    for name in set(filter(None, before)) - {str(name) for name in wanted}:
        (target / name).unlink(missing_ok=True)
    record.write_text("\n".join(sorted(map(str, wanted))))


def make(kernel, folder):
    command = ["make", "-s", "-j2", "-C", str(kernels.get(kernel) / "headers"), f"M={folder}", "modules"]
    compiler = BUILT_KERNELS[kernel].compiler if kernel in BUILT_KERNELS else COMPILER
    command.append(f"CC=ccache {compiler}" if shutil.which("ccache") else f"CC={compiler}")
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode


def build(kernel):
    target = BUILD / kernel / "source"
    target.mkdir(parents=True, exist_ok=True)
    with kernels.locked(f"{kernel}.build"):
        mirror(target)
        for name, folder in MODULES.items():
            if make(kernel, target / folder) != 0:
                print(f"kmod: {name}.ko does not build for {kernel}", file=sys.stderr)
                return False
            module = target / folder / f"{name}.ko"
            copy = BUILD / kernel / f"{name}.ko"
            if not copy.exists() or copy.stat().st_mtime < module.stat().st_mtime:
                shutil.copy2(module, copy)
    print(f"kmod: {(BUILD / kernel / 'weft.ko').relative_to(TOP)} for {kernels.release(kernel)}", flush=True)
    return True


def main(argv):
    parser = argparse.ArgumentParser(prog="./dev kmod", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="verb", required=True)
    command = commands.add_parser("build", help="build weft.ko for KERNELs (default: all)")
    command.add_argument("kernels", nargs="*", metavar="KERNEL")
    args = parser.parse_args(argv)
    try:
        return 0 if all([build(kernel) for kernel in args.kernels or KERNELS]) else 1
    except kernels.Unavailable as error:
        print(f"kmod: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
