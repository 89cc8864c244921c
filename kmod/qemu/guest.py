# SPDX-License-Identifier: GPL-2.0-only
"""A guest that lives for one command: the other side of init.c.

Its root is this machine's, read-only with a layer of memory above it, so that every program built or
installed here runs there, at the same path. The machine is emulated (TCG): it needs no privilege and no
nested virtualisation. It is this process's child and dies with it.
"""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from kmod.qemu import initrd, kernels
from kmod.qemu.settings import (BOOT_TIMEOUT, BUILT_KERNELS, CPUS, KERNEL_COMPLAINED, LOOK_PERIOD, MEMORY,
                                MONITOR_PERIOD, NOT_STARTED, SLOW_MEMORY, SLOW_PATIENCE, TIMED_OUT, TIMEOUT, TOP)

QEMU = "qemu-system-x86_64"
PR_SET_PDEATHSIG = 1
# Lines by which the kernel reports that something is wrong with it. Each makes a run fail.
COMPLAINT = re.compile(
    r"Kernel panic|Oops|WARNING:|BUG:|\bKASAN\b|\bUBSAN\b|general protection fault|"
    r"detected stalls?|self-detected stall|INFO: (task|rcu|suspicious)|soft lockup|hard LOCKUP|"
    r"possible (circular|recursive|irq) lock|inconsistent lock state|unreferenced object|"
    r"refcount_t:|list_(add|del) corruption|scheduling while atomic|sleeping function called|"
    r"trying to (register|free)|weft: a session stopped|weft: self-test")
# A complaint ends the guest, so that a run that went wrong does not last until its time is over. On
# a busy machine an emulated CPU stands still now and then. A booting kernel would take that for a
# broken timer, switch to another one, and leave an interrupt in service that blocks all of virtio's
# (no_timer_check). It would also take leaps of its clock, of which some were longer than a minute, for
# stalls. The kernel's self-tests of its ciphers and checksums would test the emulator's vector
# instructions: one failed once, before a command had begun (cryptomgr.notests).
KERNEL_ARGUMENTS = ("console=ttyS0 quiet loglevel=7 panic=-1 oops=panic panic_on_warn=1 cryptomgr.notests=1 "
                    "softlockup_panic=1 sysctl.kernel.panic_on_rcu_stall=1 watchdog_thresh=150 no_timer_check "
                    "rcupdate.rcu_cpu_stall_suppress_at_boot=1 rcupdate.rcu_cpu_stall_timeout=300 "
                    "sysctl.kernel.hung_task_timeout_secs=600")
# The kernel patches its own code as it boots. An emulator with a thread for each CPU can get that
# wrong while several CPUs run (README.md). The kernel therefore boots with one CPU, as a kernel for
# several, and init.c starts the others.
ON_THREADS = "maxcpus=1 noreplace-smp"
TAIL = 40  # lines of the console that are shown


@dataclasses.dataclass
class Options:
    """The options of `vm run`."""
    smp: int = CPUS
    memory: str = MEMORY
    numa: str = ""
    timeout: float = TIMEOUT
    icount: str = ""
    one_thread: bool = False
    append: str = ""
    nmi: bool = False
    allow: str = ""
    network: str | None = None
    out: pathlib.Path | None = None
    console: pathlib.Path | None = None


@dataclasses.dataclass
class Result:
    """The result of a guest: the exit status of `vm run`, the console's lines, those that are complaints,
    whether the command had begun, and where the CPUs of a guest were that took too long."""
    status: int
    console: list
    complaints: list
    has_begun: bool
    cpus: list = dataclasses.field(default_factory=list)


def die_with_parent(number=signal.SIGKILL):
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)


def environment():
    """Returns the environment of the command in the guest."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("WEFT_", "GTEST_"))}
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
            "TERM": "dumb", "WEFT_VM": "1", "PYTHONPATH": str(TOP), **kept}


def write_exchange(folder, kernel, command):
    def strings(values):
        return b"".join(os.fsencode(value) + b"\0" for value in values)

    release = kernels.release(kernel)
    (folder / "directory").write_bytes(os.fsencode(os.getcwd()))
    (folder / "modules").write_bytes(os.fsencode(kernels.get(kernel) / "lib/modules" / release))
    (folder / "arguments").write_bytes(strings(command))
    (folder / "environment").write_bytes(strings(f"{k}={v}" for k, v in environment().items()))


def network(options):
    """Returns the options for a network of the guest's own, from which it reaches what this process
    does."""
    if options.network is None:
        return []
    settings = ",".join(filter(None, ["user,id=net,ipv6=off", options.network]))
    return ["-netdev", settings, "-device", "virtio-net-pci,netdev=net,romfile="]


def nodes(options):
    """Returns the options for nodes of memory ("0/1-2": CPU 0 has its own, 1 and 2 another one), of
    equal size."""
    if not options.numa:
        return []
    groups = options.numa.split("/")
    mebibytes = int(options.memory[:-1]) * {"M": 1, "G": 1024}[options.memory[-1]] // len(groups)
    words = []
    for node, cpus in enumerate(groups):
        words += ["-object", f"memory-backend-ram,id=node{node},size={mebibytes}M",
                  "-numa", f"node,nodeid={node},memdev=node{node},cpus={cpus}"]
    return words


def command_line(kernel, options, work, out):
    def share(tag, path, *more):
        where = str(path).replace(",", ",,")
        settings = ",".join([f"local,id={tag},path={where},security_model=none,multidevs=remap", *more])
        return ["-fsdev", settings, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

    single = options.icount or options.one_thread
    # A node is at least a socket: kernels complain of sockets whose cores are on several.
    smp = f"{options.smp},sockets={options.smp}" if options.numa else options.smp
    accelerator = f"tcg,thread={'single' if single else 'multi'}"
    words = [QEMU, "-accel", accelerator, "-machine", "q35", "-cpu", "max", "-smp", smp,
             "-m", options.memory, *nodes(options), "-kernel", kernels.get(kernel) / "vmlinux",
             "-initrd", initrd.get(kernel),
             "-append", " ".join([KERNEL_ARGUMENTS, "" if single else ON_THREADS, options.append]),
             "-nodefaults", "-display", "none", "-no-reboot",
             "-monitor", f"unix:{work}/monitor,server,nowait",
             "-serial", f"file:{work}/console", "-serial", "stdio",
             *share("root", "/", "readonly=on"), *share("exchange", work / "exchange"),
             *share("out", out), *network(options)]
    return [*map(str, words), *(["-icount", options.icount] if options.icount else [])]


def tell_monitor(path, options, started, ended):
    """Returns the monitor commands that QEMU must get again and again while a guest runs, if
    any."""
    # When it counts instructions, QEMU before 8.1 leaves almost no time to the other CPUs while one
    # is busy (README.md). After a stop it may go on with the next one.
    turns = b"stop\ncont\n" if options.icount and options.smp > 1 else b""
    if not turns and not options.nmi:
        return
    with socket.socket(socket.AF_UNIX) as monitor:
        while monitor.connect_ex(str(path)):
            if ended.wait(MONITOR_PERIOD):
                return
        monitor.settimeout(MONITOR_PERIOD)
        while not ended.wait(MONITOR_PERIOD):
            try:
                # Earlier NMIs would meet a kernel that has no handler yet.
                monitor.sendall(turns + (b"nmi\n" if options.nmi and started.is_set() else b""))
                monitor.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                return


def where_cpus_are(path):
    """Returns what the emulator tells of its CPUs: for each one the line with its instruction pointer. Two
    looks, a second apart, tell a CPU that stands from one that works."""
    lines = []
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(LOOK_PERIOD)
        try:
            monitor.connect(str(path))
            for _ in range(2):
                answer = b""
                monitor.sendall(b"info registers -a\n")
                with contextlib.suppress(TimeoutError):
                    while data := monitor.recv(65536):
                        answer += data
                lines += [line.strip() for line in answer.decode(errors="replace").splitlines()
                          if line.startswith(("CPU#", "RIP="))]
        except OSError as error:
            lines.append(f"the emulator does not answer: {error}")
    return lines or ["the emulator does not answer"]


def wait(process, options, work):
    """Waits until the guest ends. Returns nothing, or, of one that did not boot or took too long, and was
    ended, where its CPUs were."""
    started, ended = threading.Event(), threading.Event()
    teller = threading.Thread(target=tell_monitor, args=(work / "monitor", options, started, ended))
    teller.start()
    deadline = time.monotonic() + BOOT_TIMEOUT
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                ended.set()
                teller.join()
                return where_cpus_are(work / "monitor")
            if not started.is_set() and (work / "exchange/started").exists():
                started.set()
                deadline = time.monotonic() + options.timeout
            time.sleep(0.05)
        return []
    finally:
        ended.set()
        process.kill()
        process.wait()
        teller.join()


def examine(in_time, exchange, console, allow=""):
    """Returns the result of a run. `allow`: lines with this text are no complaints."""
    lines = console.read_text(encoding="utf-8", errors="replace").splitlines() \
        if console.exists() else []
    complaints = [line for line in lines
                  if COMPLAINT.search(line) and not (allow and allow in line)]
    status = exchange / "status"
    if not in_time:
        number = TIMED_OUT
    elif complaints or not status.exists():
        number = KERNEL_COMPLAINED
    else:
        number = int(status.read_text())
    return Result(number, lines, complaints, (exchange / "started").exists())


def run(kernel, command, options, stdout=None):
    """Runs a command in a guest; its output goes to `stdout` (None: ours). See settings for
    statuses that are not its own. The command's files in /out go to options.out."""
    if not shutil.which(QEMU):
        return Result(NOT_STARTED, [], [f"there is no {QEMU}: run ./dev setup"], False)
    if kernel in BUILT_KERNELS and BUILT_KERNELS[kernel].is_slow:
        options = dataclasses.replace(options, memory=SLOW_MEMORY,
                                      timeout=options.timeout * SLOW_PATIENCE)
    with tempfile.TemporaryDirectory(prefix="weft-guest-") as work:
        work = pathlib.Path(work)
        out = options.out or work / "out"
        (work / "exchange").mkdir()
        out.mkdir(parents=True, exist_ok=True)
        write_exchange(work / "exchange", kernel, command)
        arguments = command_line(kernel, options, work, out.resolve())
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=stdout,
                                   preexec_fn=die_with_parent)
        late = wait(process, options, work)
        if options.console:
            shutil.copy(work / "console", options.console)
        result = examine(not late, work / "exchange", work / "console", options.allow)
        return dataclasses.replace(result, cpus=late)
