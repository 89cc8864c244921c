# SPDX-License-Identifier: Apache-2.0
"""Finds what kbuild compiled of a kernel module's source, by the dependencies that it writes beside
each object."""

import pathlib
import re


LEFT_OUT = {"tests", "contradict"}  # folders of modules that only tests load


def files(source):
    """Returns the .c and .h files below the folder `source` that the compiler read for modules
    other than tests. Files that modpost makes are left out."""
    source = pathlib.Path(source).resolve()
    found = set()
    for record in source.rglob(".*.o.cmd"):
        if LEFT_OUT & set(record.relative_to(source).parts):
            continue
        for name in re.findall(r"[^\s()]+\.[ch]\b", record.read_text(encoding="utf-8", errors="replace")):
            found |= {path for path in ((place / name).resolve() for place in (record.parent, source))
                      if path.is_file() and path.is_relative_to(source) and not path.name.endswith(".mod.c")}
    return found


def lines(source):
    """Returns the number of their lines; each file counts once."""
    return sum(len(path.read_text(encoding="utf-8", errors="replace").splitlines()) for path in files(source))
