# SPDX-License-Identifier: GPL-2.0-only
"""A kernel that looks after itself (debug.config): what others suffer in silence, it complains of. Built from
Debian's source; its folder has what those of kernels.py have. The modules it needs are in it, and its headers
are the built tree, without what only the kernel itself is linked from."""

import os
import re
import shutil

from archive import Apt, Unavailable, run
from settings import DEBUG_KERNELS, HERE, KERNELS

CONFIG = HERE / "debug.config"
# The compiler's cache knows a file again that names neither the time nor the folder.
ENVIRONMENT = {**os.environ, "KBUILD_BUILD_TIMESTAMP": "1970-01-01", "KBUILD_BUILD_USER": "weft",
               "KBUILD_BUILD_HOST": "weft", "CCACHE_NOHASHDIR": "1"}


def make(tree, *words):
    compiler = "ccache gcc-12" if shutil.which("ccache") else "gcc-12"
    run("make", "-s", "-C", tree, f"-j{os.cpu_count() or 2}", f"CC={compiler}", *words, env=ENVIRONMENT)


def configure(tree):
    """kconfig leaves out in silence what cannot be: that is an error here."""
    make(tree, "allnoconfig", f"KCONFIG_ALLCONFIG={CONFIG}")
    has = set((tree / ".config").read_text().splitlines())
    wanted = {line for line in CONFIG.read_text().splitlines() if line.startswith("CONFIG_")}
    if wanted - has:
        raise Unavailable(f"{CONFIG.name}: this source does not take {' '.join(sorted(wanted - has))}")


def source(name, work):
    of = DEBUG_KERNELS[name]
    (deb,) = Apt(work / "apt", KERNELS[of]).download(f"linux-source-{of}")
    run("dpkg-deb", "-x", deb, work / "source")
    run("tar", "-xf", work / f"source/usr/src/linux-source-{of}.tar.xz", "-C", work)
    return work / f"linux-source-{of}"


def build(name, work):
    """The kernel's folder, below `work`."""
    tree = source(name, work)
    configure(tree)
    make(tree, "vmlinux", "modules")
    folder = work / name
    release = (tree / "include/config/kernel.release").read_text().strip()
    modules = folder / "lib/modules" / release
    modules.mkdir(parents=True)
    (folder / "release").write_text(f"{release}\n")
    run("strip", "-g", "-o", folder / "vmlinux", tree / "vmlinux")
    run("objcopy", f"--dump-section=.BTF={folder / 'btf'}", tree / "vmlinux", work / "copy")
    for table in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(tree / table, modules / table)
    run("/sbin/depmod", "-b", folder, release)
    for path in tree.rglob("*"):
        if re.search(r"(\.o|\.a|/vmlinux)$", str(path)) and path.is_file() and not path.is_symlink():
            path.unlink()
    tree.rename(folder / "headers")
    return folder
