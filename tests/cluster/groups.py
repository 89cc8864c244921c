# SPDX-License-Identifier: Apache-2.0
"""Control groups (version 1): the record of which processes belong to the cluster.

Whatever the cluster's scripts start is put below settings.GROUP in the hierarchy `pids`, and what it
starts stays there, so that down() needs no list of processes and finds those of a broken start too.
"""

import os
import pathlib
import signal
import time

from tests.cluster.settings import GROUP, PATIENCE, POLL

ROOT = pathlib.Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "pids")  # without these the kubelet does not start


class Missing(Exception):
    """The machine lacks what a cluster needs."""


def hierarchies():
    """Folders of all mounted hierarchies of version 1."""
    found = []
    for line in pathlib.Path("/proc/mounts").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if fields[2] == "cgroup":
            found.append(pathlib.Path(fields[1]))
    missing = [name for name in NEEDED if not (ROOT / name).is_dir()]
    if missing or not found:
        raise Missing(f"no cgroup hierarchy of version 1 for {' '.join(missing or NEEDED)}: "
                      f"the test cluster needs them mounted below {ROOT}")
    return found


def make(group):
    """Makes a group in every hierarchy. A new cpuset has no CPUs; it gets its parent's."""
    for top in hierarchies():
        folder = top
        for part in group.split("/"):
            parent, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (folder / setting).exists() and not (folder / setting).read_text().strip():
                    (folder / setting).write_text((parent / setting).read_text())


def enter(group, pid=0):
    """Puts a process (0: the caller) into the group in the hierarchy that is the record."""
    folder = ROOT / "pids" / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text(f"{pid or os.getpid()}\n")


def folders():
    """The cluster's groups in all hierarchies that have any, also those that it did not make."""
    return [top / GROUP for top in sorted(ROOT.iterdir()) if (top / GROUP).is_dir()]


def all_groups():
    """The groups with all those in them, parents after what is in them. os.walk() passes over what
    goes meanwhile, as the runtime removes groups too."""
    return [pathlib.Path(path) for top in folders() for path, _, _ in os.walk(top, topdown=False)]


def processes():
    """Ids of all processes of the cluster."""
    found = set()
    for group in all_groups():
        try:
            found.update(int(pid) for pid in (group / "cgroup.procs").read_text().split())
        except OSError:
            continue  # the group went meanwhile
    found.discard(os.getpid())
    return found


def thaw():
    """Lets frozen processes go on, which cannot die: a runtime that is killed may leave a container frozen."""
    for group in all_groups():
        try:
            if (group / "freezer.state").exists():
                (group / "freezer.state").write_text("THAWED")
        except OSError:
            continue  # the group went meanwhile


def end_processes():
    """Kills until none is left: a process may have made another before it was killed."""
    deadline = time.monotonic() + PATIENCE
    while remaining := processes():
        thaw()
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes do not end: {sorted(remaining)}")
        time.sleep(0.02)


def remove():
    """Removes the groups. The kernel lets go of a group some time after its last process."""
    deadline = time.monotonic() + PATIENCE
    while folders():
        for group in all_groups():
            try:
                group.rmdir()
            except OSError:
                pass
        if folders():
            if time.monotonic() > deadline:
                raise TimeoutError(f"control groups stay: {' '.join(map(str, folders()))}")
            time.sleep(POLL)
