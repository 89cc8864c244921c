# SPDX-License-Identifier: Apache-2.0
"""Builds LTTng's kernel modules for a guest's kernel from Debian's source, once, and caches them
beside the kernel.

Nothing is installed: the guest sees the cache at the same path, and loads from there.
"""

import pathlib
import re
import resource
import shutil
import subprocess
import tempfile

from bench.kmod import compiled
from kmod.qemu import kernels

# The oldest Debian whose source builds for the kernel.
SUITES = {"6.1": "bookworm", "6.12": "trixie"}
# hrtimer_start got an argument in stable updates of both kernels that neither source knows.
LEFT_OUT = ("lttng-probe-timer.o",)


def fetch(work, kernel):
    """Returns the source's folder and its version."""
    apt = kernels.Apt(work / "apt", (SUITES[kernel],))
    deb = apt.download("lttng-modules-dkms")[0]
    kernels.run("dpkg-deb", "-x", deb, work / "source")
    return next((work / "source/usr/src").glob("lttng-modules-*")), deb.name.split("_")[1]


def timed(command, **more):
    """Runs it; its result and the CPU seconds of all its processes, which do not depend on what else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(work, kernel):
    source, version = fetch(work, kernel)
    probes = source / "src/probes/Kbuild"
    text = probes.read_text()
    for name in LEFT_OUT:
        text = re.sub(rf"^(.*\b{re.escape(name)}.*)$", r"# \1", text, flags=re.MULTILINE)
    probes.write_text(text)
    log = work / "log"
    with open(log, "wb") as out:
        made, seconds = timed(["make", "-j2", f"KERNELDIR={kernels.get(kernel) / 'headers'}"], cwd=source,
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    if made.returncode != 0:
        raise kernels.Unavailable(f"lttng-modules {version} does not build for {kernel}:\n" +
                                  log.read_text(errors="replace")[-3000:])
    folder = work / "made"
    release = kernels.release(kernel)
    target = folder / "lib/modules" / release / "extra"
    target.mkdir(parents=True)
    for module in source.rglob("*.ko"):
        subprocess.run(["strip", "-g", module], check=True)
        shutil.copy(module, target)
    for table in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(kernels.get(kernel) / "lib/modules" / release / table, target.parent)
    kernels.run("/sbin/depmod", "-b", folder, release)
    (folder / "version").write_text(f"{version}\n")
    (folder / "seconds").write_text(f"{seconds:.0f}\n")
    (folder / "compiled_lines").write_text(f"{compiled.lines(source)}\n")
    return folder


def get(kernel):
    """Returns the folder with lib/modules, version, seconds (of CPU time for the build) and
    compiled_lines (of C)."""
    kernels.get(kernel)
    folder = kernels.CACHE / f"lttng-modules-{kernel}"
    with kernels.locked(f"lttng-modules-{kernel}"):
        if not (folder / "compiled_lines").exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"building LTTng's modules for {kernel}: two minutes, once", flush=True)
            with tempfile.TemporaryDirectory(prefix="lttng.", dir=kernels.CACHE) as work:
                shutil.move(build(pathlib.Path(work), kernel), folder)
    return folder
