# SPDX-License-Identifier: GPL-2.0-only
"""Makes the guest's initrd: the first process and the modules that it needs to reach its root."""

import lzma
import pathlib
import subprocess

from kmod.qemu import kernels
from kmod.qemu.settings import BOOT_MODULES, BUILD, HERE

SOURCE = HERE / "init.c"
INPUTS = (SOURCE, pathlib.Path(__file__), HERE / "settings.py")
FOLDER_MODE, PROGRAM_MODE, FILE_MODE = 0o040755, 0o100755, 0o100644


def entry(name, mode, data=b""):
    """Returns one file of a cpio archive in the format `newc`, which the kernel unpacks."""
    path = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def archive(files):
    """Returns an archive. files: {name: (mode, bytes)}, folders before their contents."""
    entries = [entry(name, mode, data) for name, (mode, data) in files.items()]
    return b"".join(entries) + entry("TRAILER!!!", 0)


def modules(folder, release):
    """Returns the boot modules' contents with all they depend on, in the order of loading."""
    paths = []
    for name in BOOT_MODULES:
        said = kernels.run("/sbin/modprobe", "-d", folder, "-S", release, "--show-depends", name)
        paths += [line.split()[1] for line in said.splitlines() if line.startswith("insmod")]
    for path in dict.fromkeys(paths):
        data = pathlib.Path(path).read_bytes()
        yield lzma.decompress(data) if path.endswith(".xz") else data


def build(name, target):
    program = target.with_name("init")
    kernels.run("gcc", "-std=gnu11", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o", program,
                SOURCE)
    subprocess.run(["strip", program], check=True)
    files = {place: (FOLDER_MODE, b"") for place in
             ("dev", "modules", "lower", "layer", "root")}
    files["init"] = (PROGRAM_MODE, program.read_bytes())
    for number, data in enumerate(modules(kernels.get(name), kernels.release(name))):
        files[f"modules/{number:02}.ko"] = (FILE_MODE, data)
    target.with_suffix(".new").write_bytes(archive(files))
    target.with_suffix(".new").rename(target)


def get(name):
    """Returns the path of a kernel's initrd, made anew when one of its inputs is newer."""
    target = BUILD / name / "initrd"
    newest = max(path.stat().st_mtime for path in INPUTS)
    with kernels.locked(f"{name}.initrd"):
        if not target.exists() or target.stat().st_mtime < newest:
            target.parent.mkdir(parents=True, exist_ok=True)
            build(name, target)
    return target
