# SPDX-License-Identifier: GPL-2.0-only
"""Builds kernels that Debian does not have from their source, with guest.config and what
settings.py adds. Such a kernel's folder has the files that kernels.py describes, and `config`, the
configuration that was asked for. The kernel contains the modules that it boots with. Its headers
are the built tree, without the files that only the kernel itself is linked from."""

import os
import re
import shutil

from kmod.qemu.archive import Apt, Unavailable, run
from kmod.qemu.settings import BUILT_KERNELS, HERE, KERNELS

# The compiler's cache knows a file again that names neither the time nor the folder.
ENVIRONMENT = {**os.environ, "KBUILD_BUILD_TIMESTAMP": "1970-01-01", "KBUILD_BUILD_USER": "weft",
               "KBUILD_BUILD_HOST": "weft", "CCACHE_NOHASHDIR": "1"}


def config(name):
    """Returns the configuration that is asked for; the kernel's folder keeps a copy."""
    kernel = BUILT_KERNELS[name]
    parts = [(HERE / part).read_text() for part in ("guest.config", kernel.config)]
    return "".join([f"# {kernel.source}, {kernel.compiler}\n", *parts])


def is_as_wanted(name, folder):
    kept = folder / "config"
    return kept.exists() and kept.read_text() == config(name)


def make(name, tree, *words):
    compiler = BUILT_KERNELS[name].compiler
    if shutil.which("ccache"):
        compiler = f"ccache {compiler}"
    run("make", "-s", "-C", tree, f"-j{os.cpu_count() or 2}", f"CC={compiler}", *words, env=ENVIRONMENT)


def configure(name, tree):
    """Configures the kernel. kconfig silently leaves out what is impossible: that is an error
    here."""
    asked = tree.parent / "config"
    asked.write_text(config(name))
    make(name, tree, "allnoconfig", f"KCONFIG_ALLCONFIG={asked}")
    has = set((tree / ".config").read_text().splitlines())
    wanted = {line for line in config(name).splitlines() if line.startswith("CONFIG_")}
    if wanted - has:
        raise Unavailable(f"{name}: this source does not take {' '.join(sorted(wanted - has))}")


def source(name, work):
    of = BUILT_KERNELS[name].source
    (deb,) = Apt(work / "apt", KERNELS[of]).download(f"linux-source-{of}")
    run("dpkg-deb", "-x", deb, work / "source")
    run("tar", "-xf", work / f"source/usr/src/linux-source-{of}.tar.xz", "-C", work)
    return work / f"linux-source-{of}"


def build(name, work):
    """Builds the kernel's folder, below `work`."""
    tree = source(name, work)
    configure(name, tree)
    make(name, tree, "vmlinux", "modules")
    folder = work / name
    release = (tree / "include/config/kernel.release").read_text().strip()
    make(name, tree, f"INSTALL_MOD_PATH={folder}", "INSTALL_MOD_STRIP=1",
         "DEPMOD=/sbin/depmod", "modules_install")
    (folder / f"lib/modules/{release}/build").unlink(missing_ok=True)
    (folder / "release").write_text(f"{release}\n")
    run("strip", "-g", "-o", folder / "vmlinux", tree / "vmlinux")
    run("objcopy", f"--dump-section=.BTF={folder / 'btf'}", tree / "vmlinux", work / "copy")
    for path in tree.rglob("*"):
        if re.search(r"(\.o|\.a|/vmlinux)$", str(path)) and path.is_file() and not path.is_symlink():
            path.unlink()
    tree.rename(folder / "headers")
    (work / "config").rename(folder / "config")
    return folder
