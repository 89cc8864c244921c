# SPDX-License-Identifier: GPL-2.0-only
"""Settings that the guests' scripts share: kernels, places, limits with their reasons."""

import dataclasses
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent

# Outside the tree, since it outlives a clone. May be deleted at any time.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / \
    "weft" / "kernels"
BUILD = TOP / "build" / "kmod"  # a folder per kernel

# A kernel's name -> Debian's suites that have it. The newest linux-image-amd64 of these is taken when
# it is fetched first, and stays until its folder is deleted.
KERNELS = {
    "6.1": ("bookworm", "bookworm-security"),
    "6.12": ("bookworm-backports",),
}



@dataclasses.dataclass(frozen=True)
class Headers:
    """A kernel that weft.ko is compiled for, on Debian's headers alone, and that no guest runs: its
    suites, and the settings that another compiler than its own needs."""
    suites: tuple
    options: tuple


COMPILED_KERNELS = {
    # The oldest supported kernel. Its headers do not change any more, so a warning comes from our
    # code.
    "5.10": Headers(("bullseye-security",), ("KCFLAGS=-Werror",)),
    # The newest kernel that the archive has today.
    "newest": Headers(("trixie-backports",),
                      ("KCFLAGS=-Wno-address-of-packed-member", "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=")),
}

COMPILER = "gcc-12"  # of Debian's kernels, and so of modules for them


@dataclasses.dataclass(frozen=True)
class Built:
    """A kernel that is built here, for long forms: the kernel whose source it is, what its .config has beside
    guest.config, and its compiler. A slow one takes many times as long for everything."""
    source: str
    config: str
    compiler: str = COMPILER
    is_slow: bool = False


BUILT_KERNELS = {
    "6.12-debug": Built("6.12", "debug.config", is_slow=True),
    "6.12-kcfi": Built("6.12", "kcfi.config", compiler="clang-19"),
}
ALL_KERNELS = [*KERNELS, *BUILT_KERNELS]  # those that guests run

# Modules that the guest's first process needs to reach its root.
BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")

CPUS = 2  # a guest's CPUs are threads of one process: more than the machine has only slow it down
MEMORY = "2G"  # of which a guest touches what it needs; its root's changes and /tmp live there too
TIMEOUT = 300  # seconds; an emulated machine is 8 to 40 times slower than this one
SLOW_PATIENCE = 10  # factor for TIMEOUT in a kernel that checks itself
SLOW_MEMORY = "3G"  # KASAN takes an eighth of it to describe the rest
BOOT_TIMEOUT = 300  # it takes 3 s on an idle machine, and 20 s on a busy one
MONITOR_PERIOD = 0.02  # seconds, of turns and of NMIs: an emulated CPU spends about 1 ms in one of these
LOOK_PERIOD = 5  # seconds, between two looks at the CPUs of a guest that took too long

# Exit statuses of `vm run` that are not the command's own.
TIMED_OUT = 124
KERNEL_COMPLAINED = 125  # panic, oops, warning, or it ended without a word
NOT_STARTED = 126

UNAVAILABLE = 77  # `kmod build`: nothing is known of the module, since the kernel's headers cannot be had
