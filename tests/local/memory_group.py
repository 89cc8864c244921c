# SPDX-License-Identifier: Apache-2.0
"""Control groups that limit memory, of version 1 or 2: where they can be made, and how one is made to overflow."""

import contextlib
import os
import pathlib

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MI = 1 << 20
# Limit and use, in version 2 and in version 1.
FILES = ("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")


def top():
    """Where groups with memory limits can be made: version 2, or the hierarchy of version 1. None: nowhere."""
    delegates = CGROUPS / "cgroup.subtree_control"
    if delegates.exists():
        return CGROUPS if "memory" in delegates.read_text().split() else None
    memory = CGROUPS / "memory"
    return memory if (memory / "cgroup.procs").exists() and os.access(memory, os.W_OK) else None


def limit_file(group):
    return next(group / limit for limit, _ in FILES if (group / limit).exists())


def limit(group):
    return int(limit_file(group).read_text())


def use_up(group):
    """Lowers the limit so far that what is in the group exceeds it now, or when it needs more: version 1 takes no limit
    that is exceeded already. The group may end meanwhile."""
    for file, use in FILES:
        for lower in (lambda: "0", (group / use).read_text):
            with contextlib.suppress(OSError):
                text = lower()
                with open(group / file, "r+", encoding="ascii") as to:
                    to.write(text)
                return
