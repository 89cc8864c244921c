# SPDX-License-Identifier: GPL-2.0-only
"""Fetches packages of Debian's archive without installing them."""

import re
import subprocess

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """A kernel cannot be had; the text says why."""


class NotInArchive(Unavailable):
    """The archive does not have it, or does not answer."""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, **more)
    if done.returncode != 0:
        said = (done.stdout[-1000:] + done.stderr[-3000:]).decode(errors="replace")
        raise NotInArchive(f"{' '.join(map(str, command[:3]))} ...: exit status {done.returncode}\n{said}")
    return done.stdout.decode(errors="replace")


def sites():
    """Returns the addresses of the machine's Debian archive and its security archive, as apt knows
    them."""
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
                   "APT::Sandbox::User=root", "Acquire::Languages=none", "Acquire::Retries=3",
                   "APT::Update::Error-Mode=any"]
        return run(tool, "-q", *[word for option in options for word in ("-o", option)], *words,
                   cwd=self.folder)

    def depends(self, package):
        """Returns the names of the linux-* packages that a package needs."""
        said = self.run("apt-cache", "show", "--no-all-versions", package)
        line = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
        words = re.split(r"[,|]\s*", line.group(1)) if line else []
        return [word.split()[0] for word in words if word.startswith("linux-")]

    def download(self, *packages):
        """Fetches the packages into the folder; returns their files."""
        self.run("apt-get", "download", *packages)
        return sorted(self.folder.glob("*.deb"))
