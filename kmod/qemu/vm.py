#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""./dev vm: runs commands in a guest with another kernel, on this machine's files. See
kmod/qemu/README.md."""

import argparse
import dataclasses
import pathlib
import signal
import sys

from kmod.qemu import guest, kernels
from kmod.qemu.settings import ALL_KERNELS, CPUS, KERNEL_COMPLAINED, KERNELS, MEMORY, NOT_STARTED, TIMED_OUT, TIMEOUT

GUEST_FAILED = (TIMED_OUT, KERNEL_COMPLAINED)


def parse(argv):
    split = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(prog="./dev vm", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="verb", required=True)
    run = commands.add_parser("run", usage="./dev vm run KERNEL [OPTIONS] -- COMMAND [ARGUMENTS]",
                              help="start a guest, run COMMAND in this folder, end it")
    run.add_argument("kernel", choices=ALL_KERNELS)
    run.add_argument("--smp", type=int, default=CPUS, help="CPUs")
    run.add_argument("--memory", default=MEMORY)
    run.add_argument("--numa", default="", metavar="0/1-2",
                     help="a node of memory for each of these groups of CPUs")
    run.add_argument("--icount", default="", metavar="shift=0,sleep=off",
                     help="virtual time by instructions, with one CPU")
    run.add_argument("--one-thread", action="store_true",
                     help="all CPUs by one thread: they take turns")
    run.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds")
    run.add_argument("--out", type=pathlib.Path, help="where files go that COMMAND writes to /out")
    run.add_argument("--console", type=pathlib.Path, help="where the kernel's log goes")
    run.add_argument("--append", default="", help="more words for the kernel's command line")
    run.add_argument("--nmi", action="store_true",
                     help="interrupt CPU 0 by NMIs, all the time (with apic_extnmi=all in --append: every CPU)")
    run.add_argument("--allow", default="", metavar="TEXT",
                     help="lines of the kernel's log with TEXT are expected: no complaints")
    run.add_argument("--network", nargs="?", const="", metavar="hostfwd=tcp::2222-:22",
                     help="a device eth0, through which COMMAND reaches what this process does")
    run.add_argument("--with-parent", action="store_true",
                     help="end when the process that started this does, whatever ended it")
    fetch = commands.add_parser("fetch", help="get kernels into the cache, print their folders")
    fetch.add_argument("kernels", nargs="*", default=list(KERNELS))
    args = parser.parse_args(argv[:split])
    args.command = argv[split + 1:]
    if args.verb == "run" and not args.command:
        run.error("which command?")
    return args


def run(args):
    if args.with_parent:
        guest.die_with_parent(signal.SIGTERM)
    options = guest.Options(**{field.name: getattr(args, field.name)
                               for field in dataclasses.fields(guest.Options)})
    result = guest.run(args.kernel, args.command, options)
    if not result.has_begun and result.status in GUEST_FAILED:
        # Up to here only Debian's kernel and the emulator were at work, which gets a boot wrong once in
        # a thousand times. What always fails does so again.
        reason = (result.complaints or ["it did not get that far"])[0]
        print(f"vm: the guest's kernel failed before the command began: {reason}; starting it anew", file=sys.stderr)
        result = guest.run(args.kernel, args.command, options)
    if result.status in (*GUEST_FAILED, NOT_STARTED):
        shown = result.complaints[:guest.TAIL] + ["--- the console's end:"] + \
            result.console[-guest.TAIL:]
        if result.cpus:
            shown += ["--- its CPUs, seen twice:"] + result.cpus
        when = "after" if result.has_begun else "before"
        print(f"vm: status {result.status}, {when} the command began; the guest's kernel said:", *shown, sep="\n  ",
              file=sys.stderr)
    return result.status


def ended_by_signal(number, _):
    raise SystemExit(128 + number)


def main(argv):
    args = parse(argv)
    signal.signal(signal.SIGTERM, ended_by_signal)
    try:
        if args.verb == "run":
            return run(args)
        for name in args.kernels:
            print(kernels.get(name))
        return 0
    except kernels.Unavailable as error:
        print(f"vm: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("vm: interrupted", file=sys.stderr)
    return NOT_STARTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
