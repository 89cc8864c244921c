# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kernels with their headers, unpacked into the cache; nothing is installed. Some kernels
are built from Debian's source instead (built_kernel.py), and some have headers alone, because they
are only compiled for.

A kernel's folder appears complete or not at all. In it:
  release        the kernel's release, a line
  vmlinux        the uncompressed image: a PVH guest starts it without unpacking it first
  btf            its BTF section, for tests that read its types without a guest
  lib/modules/   with depmod's tables
  headers        link to the folder for make -C
Where there are only headers, the first and the last of these.
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

from kmod.qemu import built_kernel
from kmod.qemu.archive import Apt, NotInArchive, Unavailable, run
from kmod.qemu.settings import ALL_KERNELS, BUILT_KERNELS, CACHE, COMPILED_KERNELS, KERNELS


@contextlib.contextmanager
def locked(name):
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def newest(apt, kind):
    """Returns the package behind linux-image-amd64 or linux-headers-amd64."""
    package = f"linux-{kind}-amd64"
    for name in apt.depends(package):
        if name.startswith(f"linux-{kind}-"):
            return name
    raise NotInArchive(f"the archive's {package} depends on no package linux-{kind}-*: check the archive's suite")


def with_its_needs(apt, headers):
    """Returns the packages with the headers and with what they need to build modules (scripts and
    common headers)."""
    also = [name for name in apt.depends(headers)
            if name.startswith("linux-kbuild-") or name.endswith("-common")]
    return [headers, *also]


def unpack(debs, folder):
    folder.mkdir()
    for deb in debs:
        run("dpkg-deb", "-x", deb, folder)
    return folder


def uncompressed(image):
    """Returns the ELF file inside a bzImage, by the boot protocol's payload_offset and
    payload_length."""
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


def make_headers_movable(folder):
    """Changes Debian's makefile of the headers, which names /usr/src, so that it names this folder.
    Returns their release."""
    (own,) = folder.glob("usr/src/linux-headers-*-amd64")
    makefile = own / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{CACHE / folder.name}/usr/src/"))
    # If this file exists, kbuild wants pahole to describe weft.ko's own types, which no test reads.
    (own / "vmlinux").unlink(missing_ok=True)
    (folder / "headers").symlink_to(own.relative_to(folder))
    release = own.name.removeprefix("linux-headers-")
    (folder / "release").write_text(f"{release}\n")
    return release


def link_headers(folder, release):
    (common,) = folder.glob("usr/src/linux-headers-*-common")
    for link, target in (("build", folder / f"usr/src/linux-headers-{release}"), ("source", common)):
        place = folder / f"lib/modules/{release}/{link}"
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(target, place.parent))


def unpack_image(folder, release):
    (folder / "vmlinux").write_bytes(uncompressed((folder / f"boot/vmlinuz-{release}").read_bytes()))
    run("objcopy", f"--dump-section=.BTF={folder / 'btf'}", folder / "vmlinux", folder / "copy")
    (folder / "copy").unlink()
    link_headers(folder, release)
    run("/sbin/depmod", "-b", folder, release)


def fetch(name, work):
    """Fetches a kernel with its headers."""
    apt = Apt(work / "apt", KERNELS[name])
    image = newest(apt, "image")
    headers = image.replace("linux-image-", "linux-headers-").replace("-unsigned", "")
    folder = unpack(apt.download(image, *with_its_needs(apt, headers)), work / name)
    unpack_image(folder, make_headers_movable(folder))
    return folder


def fetch_headers(name, work):
    apt = Apt(work / "apt", COMPILED_KERNELS[name].suites)
    folder = unpack(apt.download(*with_its_needs(apt, newest(apt, "headers"))), work / name)
    make_headers_movable(folder)
    return folder


def make(name):
    for killed in CACHE.glob(f"{name}.????????"):  # abandoned, as we have the lock
        shutil.rmtree(killed)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=CACHE) as work:
        work = pathlib.Path(work)
        if name in BUILT_KERNELS:
            print(f"vm: building kernel {name} into {CACHE / name}: some ten minutes", flush=True)
            folder = built_kernel.build(name, work)
        elif name in COMPILED_KERNELS:
            print(f"kmod: fetching headers of kernel {name} into {CACHE / name}", flush=True)
            folder = fetch_headers(name, work)
        else:
            print(f"vm: fetching kernel {name} into {CACHE / name}", flush=True)
            folder = fetch(name, work)
        if (CACHE / name).exists():
            (CACHE / name).rename(work / "before")
        shutil.move(folder, CACHE / name)


def is_there(name):
    """Is the kernel there? One that was built with another .config does not count."""
    folder = CACHE / name
    return folder.exists() and (name not in BUILT_KERNELS or built_kernel.is_as_wanted(name, folder))


def get(name):
    """Returns the folder of a kernel, which is fetched or built the first time."""
    known = [*ALL_KERNELS, *COMPILED_KERNELS]
    if name not in known:
        raise Unavailable(f"no kernel '{name}'; there are: {' '.join(known)}")
    if not is_there(name):
        with locked(name):
            if not is_there(name):
                make(name)
    return CACHE / name


def release(name):
    return (get(name) / "release").read_text().strip()
