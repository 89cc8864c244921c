# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kernels with their headers, unpacked into the cache; nothing is installed. And some that are built
from Debian's source (built_kernel.py).

A kernel's folder appears complete or not at all. In it:
  release        the kernel's release, a line
  vmlinux        the uncompressed image: a PVH guest starts it without unpacking it first
  btf            its BTF section, for whoever wants to know its types without a guest
  lib/modules/   with depmod's tables
  headers        link to the folder for make -C
Several processes may ask at once: one fetches, the others wait.
"""

import contextlib
import fcntl
import lzma
import os
import pathlib
import shutil
import subprocess
import tempfile
import zlib

import built_kernel
from archive import Apt, Unavailable, run
from settings import ALL_KERNELS, BUILT_KERNELS, CACHE, KERNELS


@contextlib.contextmanager
def locked(name):
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def packages_of(apt):
    """Image, headers, and what the headers need to build modules (scripts and common headers)."""
    image = next(name for name in apt.depends("linux-image-amd64") if name.startswith("linux-image-"))
    headers = image.replace("linux-image-", "linux-headers-").replace("-unsigned", "")
    also = [name for name in apt.depends(headers)
            if name.startswith("linux-kbuild-") or name.endswith("-common")]
    return [image, headers, *also]


def uncompressed(image):
    """The ELF file inside a bzImage, by the boot protocol's payload_offset and payload_length."""
    setup_bytes = ((image[0x1f1] or 4) + 1) * 512
    offset, length = (int.from_bytes(image[at:at + 4], "little") for at in (0x248, 0x24c))
    payload = image[setup_bytes + offset:setup_bytes + offset + length]
    if payload.startswith(b"\xfd7zXZ\0"):
        inner = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b"\x28\xb5\x2f\xfd"):
        # Four bytes with the uncompressed size follow the frame.
        inner = subprocess.run(["zstd", "-dc"], input=payload[:-4], stdout=subprocess.PIPE,
                               check=True).stdout
    else:
        inner = zlib.decompressobj(31).decompress(payload)
    if not inner.startswith(b"\x7fELF"):
        raise Unavailable("the kernel's image has no ELF file inside")
    return inner


def make_headers_movable(folder, release):
    """Debian's makefile of the headers names /usr/src: here it names this folder."""
    own = folder / f"usr/src/linux-headers-{release}"
    common = next(folder.glob("usr/src/linux-headers-*-common"))
    final = CACHE / folder.name / common.relative_to(folder)
    (own / "Makefile").write_text(f"include {final}/Makefile\n")
    # With it, kbuild wants pahole to describe weft.ko's own types, which nobody reads.
    (own / "vmlinux").unlink(missing_ok=True)
    for link, target in (("build", own), ("source", common)):
        place = folder / f"lib/modules/{release}/{link}"
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(target, place.parent))
    (folder / "headers").symlink_to(own.relative_to(folder))


def unpack(debs, folder):
    for deb in debs:
        run("dpkg-deb", "-x", deb, folder)
    release = next(folder.glob("lib/modules/*")).name
    (folder / "release").write_text(f"{release}\n")
    (folder / "vmlinux").write_bytes(uncompressed((folder / f"boot/vmlinuz-{release}").read_bytes()))
    run("objcopy", f"--dump-section=.BTF={folder / 'btf'}", folder / "vmlinux", folder / "copy")
    (folder / "copy").unlink()
    make_headers_movable(folder, release)
    run("/sbin/depmod", "-b", folder, release)


def fetch(name, work):
    apt = Apt(work / "apt", KERNELS[name])
    folder = work / name
    folder.mkdir()
    unpack(apt.download(*packages_of(apt)), folder)
    return folder


def make(name):
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=CACHE) as work:
        work = pathlib.Path(work)
        if name in BUILT_KERNELS:
            print(f"vm: building kernel {name} into {CACHE / name}: some ten minutes", flush=True)
            folder = built_kernel.build(name, work)
        else:
            print(f"vm: fetching kernel {name} into {CACHE / name}", flush=True)
            folder = fetch(name, work)
        if (CACHE / name).exists():
            (CACHE / name).rename(work / "before")
        shutil.move(folder, CACHE / name)


def is_there(name):
    """One that was built of another .config is none."""
    folder = CACHE / name
    return folder.exists() and (name not in BUILT_KERNELS or built_kernel.is_as_wanted(name, folder))


def get(name):
    """The folder of a kernel, fetched or built at the first time."""
    if name not in ALL_KERNELS:
        raise Unavailable(f"no kernel '{name}'; there are: {' '.join(ALL_KERNELS)}")
    if not is_there(name):
        with locked(name):
            if not is_there(name):
                make(name)
    return CACHE / name


def release(name):
    return (get(name) / "release").read_text().strip()
