# SPDX-License-Identifier: GPL-2.0-only
"""Debian's kernels with their headers, unpacked into the cache; nothing is installed.

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
import re
import shutil
import subprocess
import tempfile
import zlib

from settings import CACHE, KERNELS

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """A kernel cannot be had; the text says why."""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, **more)
    if done.returncode != 0:
        said = (done.stdout[-1000:] + done.stderr[-3000:]).decode(errors="replace")
        raise Unavailable(f"{' '.join(map(str, command[:3]))} ...: exit status {done.returncode}\n{said}")
    return done.stdout.decode(errors="replace")


@contextlib.contextmanager
def locked(name):
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sites():
    """The machine's Debian archive, and its security archive, as apt knows them."""
    found = {}
    for line in run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)",
                    "Created-By: Packages").splitlines():
        site, release = line.split()
        if release.startswith("bookworm"):
            found.setdefault("security" if "security" in release else "main", site)
    if "main" not in found:
        raise Unavailable("apt has no source of Debian 12")
    return found


class Apt:
    """apt with lists and downloads of its own, in a folder: the system's stay as they are."""

    def __init__(self, folder, suites):
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial", "sources", "preferences"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        known = sites()
        lines = [f"deb [signed-by={KEYS}] {known.get(kind, '')} {suite} main\n" for suite in suites
                 for kind in ["security" if suite.endswith("-security") else "main"] if kind in known]
        (folder / "sources/kernels.list").write_text("".join(lines))
        self.run("apt-get", "update")

    def run(self, tool, *words):
        options = [f"Dir::State={self.folder}", f"Dir::State::lists={self.folder}/lists",
                   f"Dir::State::status={self.folder}/status", f"Dir::Cache={self.folder}/cache",
                   f"Dir::Cache::archives={self.folder}/cache/archives",
                   "Dir::Etc::SourceList=/dev/null", f"Dir::Etc::SourceParts={self.folder}/sources",
                   f"Dir::Etc::PreferencesParts={self.folder}/preferences", "Debug::NoLocking=true",
                   "APT::Sandbox::User=root", "Acquire::Languages=none", "Acquire::Retries=3"]
        return run(tool, "-q", *[word for option in options for word in ("-o", option)], *words,
                   cwd=self.folder)

    def depends(self, package):
        """The names of the linux-* packages that a package needs."""
        said = self.run("apt-cache", "show", "--no-all-versions", package)
        line = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
        words = re.split(r"[,|]\s*", line.group(1)) if line else []
        return [word.split()[0] for word in words if word.startswith("linux-")]

    def download(self, *packages):
        """Fetches the packages into the folder; returns their files."""
        self.run("apt-get", "download", *packages)
        return sorted(self.folder.glob("*.deb"))


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


def fetch(name):
    with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=CACHE) as work:
        work = pathlib.Path(work)
        apt = Apt(work / "apt", KERNELS[name])
        folder = work / name
        folder.mkdir()
        unpack(apt.download(*packages_of(apt)), folder)
        shutil.move(folder, CACHE / name)


def get(name):
    """The folder of a kernel, fetched at the first time."""
    if name not in KERNELS:
        raise Unavailable(f"no kernel '{name}'; there are: {' '.join(KERNELS)}")
    folder = CACHE / name
    if not folder.exists():
        with locked(name):
            if not folder.exists():
                print(f"vm: fetching kernel {name} into {folder}", flush=True)
                fetch(name)
    return folder


def release(name):
    return (get(name) / "release").read_text().strip()
