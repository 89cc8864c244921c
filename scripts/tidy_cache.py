# SPDX-License-Identifier: Apache-2.0
"""Remembers, beyond a clone, the sources about which clang-tidy had no complaint: an empty file in
~/.cache/weft/tidy ($XDG_CACHE_HOME) for each source, named by a hash of all that clang-tidy's
answer depends on. That folder may be deleted at any time; files that were not used for a month are
deleted."""

import contextlib
import functools
import hashlib
import os
import pathlib
import shlex
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft/tidy"
KEPT = 30 * 24 * 3600  # seconds


@functools.cache
def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def inside(text):
    """Replaces the path of this clone, so that the text is equal in every clone."""
    return text.replace(str(TOP), "TOP")


def included(entry):
    """Returns the files that the compiler reads for an entry of the compile database, the source
    first. None: they are not known."""
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    listed = subprocess.run([*words, "-M"], cwd=entry["directory"], check=False, capture_output=True, text=True)
    if listed.returncode != 0:
        return None
    names = listed.stdout.replace("\\\n", " ").split(":", 1)[1].split()
    return [os.path.join(entry["directory"], name) for name in names]


class Clean:
    """`command`: clang-tidy's command without a source. Thread-safe."""

    def __init__(self, command):
        version = subprocess.run([command[0], "--version"], check=True, capture_output=True, text=True).stdout
        self.common = [version, *map(inside, command)]

    def of(self, entries):
        """Returns the file for a source that has these entries in the compile database. Its name
        depends on the files that the compiler reads; clang-tidy's own headers change with its
        version. None: the files are not known."""
        parts = list(self.common)
        for entry in entries:
            paths = included(entry)
            if paths is None:
                return None
            paths += [str(folder / ".clang-tidy") for folder in pathlib.Path(entry["file"]).parents]
            parts.append(inside(entry["command"]))
            parts += [f"{inside(path)} {digest(path)}" for path in paths if os.path.exists(path)]
        return FOLDER / hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @staticmethod
    def remember(file):
        FOLDER.mkdir(parents=True, exist_ok=True)
        file.touch()

    @staticmethod
    def forget_unused():
        for file in FOLDER.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another run's doing
                if file.stat().st_mtime < time.time() - KEPT:
                    file.unlink()
