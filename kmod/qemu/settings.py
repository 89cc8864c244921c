# SPDX-License-Identifier: GPL-2.0-only
"""What the guests' scripts agree on: kernels, places, limits with their reasons."""

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
    """A kernel that weft.ko is compiled for and runs in no guest, on Debian's headers alone: its suites, and what
    another compiler than its own needs to be told."""
    suites: tuple
    options: tuple


COMPILED_KERNELS = {
    # The oldest that there is to be. What its headers say is settled, so a warning is ours.
    "5.10": Headers(("bullseye-security",), ("KCFLAGS=-Werror",)),
    # Whatever it is by now.
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

CPUS = 2  # a guest's CPUs are threads of one process: more than the machine's only slow it down
MEMORY = "2G"  # of which a guest touches what it needs; its root's changes and /tmp live there too
TIMEOUT = 300  # seconds; an emulated machine is 8 to 40 times slower than this one
SLOW_PATIENCE = 10  # times that, for a kernel that looks after itself
SLOW_MEMORY = "3G"  # of which an eighth says what of the rest may be used
BOOT_TIMEOUT = 300  # it takes 3 s on an idle machine, and 20 s on a busy one
MONITOR_PERIOD = 0.02  # seconds, of turns and of NMIs: an emulated CPU spends about 1 ms in one of these

# Exit statuses of `vm run` that are not the command's own.
TIMED_OUT = 124
KERNEL_COMPLAINED = 125  # panic, oops, warning, or it ended without a word
NOT_STARTED = 126

UNAVAILABLE = 77  # `kmod build`: nothing is known of the module, since the kernel's headers cannot be had
