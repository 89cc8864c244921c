#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""./dev kmod build [KERNEL...]: builds weft.ko for each kernel, as build/kmod/KERNEL/weft.ko, and
beside it contradict.ko, which its tests load. For a kernel that no guest runs, it checks that the
module compiles and finds all symbols that it needs.

kbuild writes beside its sources. The script therefore mirrors kmod/ and its files of lib/ into
build/kmod/KERNEL/source first, and builds there. It copies only changed files, so that make sees
what is new. Paths like $(src)/../lib/event hold in both places.
"""

import argparse
import shutil
import subprocess
import sys

from kmod.qemu import kernels
from kmod.qemu.settings import BUILD, BUILT_KERNELS, COMPILED_KERNELS, COMPILER, KERNELS, TOP, UNAVAILABLE

MIRRORED = {"kmod": ("*.c", "*.h", "*.sh", "*.mk", "Kbuild", "Makefile"), "lib": ("*.c", "*.h", "*.mk")}
LEFT_OUT = ("kmod/qemu", "kmod/tests")  # these run in user space
TEST_MODULE = "kmod/contradict"
MODULES = {"weft": "kmod", "contradict": TEST_MODULE}


def sources():
    """Returns the sources of all modules."""
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


def make(kernel, folder, *words):
    command = ["make", "-s", "-j2", "-C", str(kernels.get(kernel) / "headers"), f"M={folder}", *words]
    compiler = BUILT_KERNELS[kernel].compiler if kernel in BUILT_KERNELS else COMPILER
    command.append(f"CC=ccache {compiler}" if shutil.which("ccache") else f"CC={compiler}")
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode


def needed_symbols(path):
    said = subprocess.run(["nm", "-u", "-P", path], check=True, capture_output=True, text=True).stdout
    # kbuild defines the module itself when it links.
    return {line.split()[0] for line in said.splitlines()} - {"__this_module"}


def exported_symbols(kernel):
    """Returns the symbols that every module may use: those without a namespace."""
    lines = (kernels.get(kernel) / "headers/Module.symvers").read_text().splitlines()
    columns = [line.split("\t") for line in lines]
    return {line[1] for line in columns if not "".join(line[4:])}


def compile_only(kernel, target):
    """Compiles without kbuild's tools that run after the compiler: they may be made for a newer C
    library than this machine's."""
    folder = target / MODULES["weft"]
    if make(kernel, folder, "weft.o", "CONFIG_OBJTOOL=", "CONFIG_STACK_VALIDATION=",
            *COMPILED_KERNELS[kernel].options) != 0:
        print(f"kmod: weft.o does not compile for {kernel}", file=sys.stderr)
        return False
    missing = needed_symbols(folder / "weft.o") - exported_symbols(kernel)
    if missing:
        print(f"kmod: {kernel} has no {' '.join(sorted(missing))} for modules", file=sys.stderr)
        return False
    print(f"kmod: weft.o compiles for {kernels.release(kernel)}", flush=True)
    return True


def build_modules(kernel, target):
    for name, folder in MODULES.items():
        if make(kernel, target / folder, "modules") != 0:
            print(f"kmod: {name}.ko does not build for {kernel}", file=sys.stderr)
            return False
        module = target / folder / f"{name}.ko"
        copy = BUILD / kernel / f"{name}.ko"
        if not copy.exists() or copy.stat().st_mtime < module.stat().st_mtime:
            shutil.copy2(module, copy)
    print(f"kmod: {(BUILD / kernel / 'weft.ko').relative_to(TOP)} for {kernels.release(kernel)}", flush=True)
    return True


def build(kernel):
    target = BUILD / kernel / "source"
    target.mkdir(parents=True, exist_ok=True)
    with kernels.locked(f"{kernel}.build"):
        mirror(target)
        return (compile_only if kernel in COMPILED_KERNELS else build_modules)(kernel, target)


def main(argv):
    parser = argparse.ArgumentParser(prog="./dev kmod", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="verb", required=True)
    command = commands.add_parser("build", help="build weft.ko for KERNELs (default: Debian's that guests run)")
    command.add_argument("kernels", nargs="*", metavar="KERNEL")
    args = parser.parse_args(argv)
    try:
        return 0 if all([build(kernel) for kernel in args.kernels or KERNELS]) else 1
    except kernels.NotInArchive as error:
        reason = " ".join(str(error).split())
        print(f"the headers of this kernel cannot be had here: {reason}", file=sys.stderr)
        return UNAVAILABLE
    except kernels.Unavailable as error:
        print(f"kmod: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
