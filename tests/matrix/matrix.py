#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of one group of cases.py with and without libweft.so and compares.

    matrix.py --library libweft.so --programs FOLDER (--group NAME | --list) [--only CASE] [-v]

Each program runs five times: without the library; with it, but no WEFT_DIR; with a folder in which
no agent has been; with a weft folder in which nothing is enabled; with all its events enabled. Exit
status and output have to be the same every time. With events enabled, the rings must have recorded
and discarded exactly what the program reports as emitted, unless the case says otherwise. For a
program without events, the preloaded provider reports it. Exit status 0: all well.
"""

import argparse
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tests.matrix import cases
from tests.matrix.weft_folder import WeftFolder

LIMIT = 60  # seconds for one run of one program; not a measurement


class Failure(Exception):
    pass


class Witness:
    """programs/witness.c, for programs that have no provider; its counts lie in a file."""
    COUNTS = struct.Struct("<QQ")  # emitted; of these in children that share their parent's memory

    def __init__(self, programs, folder):
        self.library = os.path.join(programs, "glibc", "witness.so")
        self.path = os.path.join(folder, "witness")
        with open(self.path, "wb") as file:
            file.truncate(4096)

    def environment(self, library):
        return {"LD_PRELOAD": f"{library}:{self.library}", "WITNESS": self.path}

    def lines(self):
        """Returns the counts in the lines that a program of the matrix prints."""
        with open(self.path, "rb") as file:
            emitted, sharing = self.COUNTS.unpack(file.read(self.COUNTS.size))
        return [f"emitted {emitted}", f"sharing {sharing}"]


def hindrance(case, flavour):
    """Returns why the case cannot run on this machine, or None."""
    compiler = cases.COMPILERS.get(flavour)
    if compiler is not None and shutil.which(compiler) is None:
        return f"there is no {compiler}"
    if case.root and os.geteuid() != 0:
        return "needs root"
    for tool in case.tools:
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    return None


class Runner:
    def __init__(self, library, programs, verbose):
        self.library = os.path.abspath(library)
        self.programs = os.path.abspath(programs)
        self.verbose = verbose

    def command(self, case, flavour):
        words = {"bin": os.path.join(self.programs, flavour), "programs": self.programs,
                 "library": self.library}
        return [word if case.group == "system" else word.format(**words) for word in case.argv]

    def run(self, case, flavour, environment):
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/", "LANG": "C"}
        env.update(case.env)
        env.update(environment)
        with tempfile.TemporaryDirectory(prefix="weft-matrix-") as folder:
            os.chmod(folder, 0o755)
            process = subprocess.Popen(self.command(case, flavour), env=env, cwd=folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                output, _ = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                raise Failure(f"did not end in {LIMIT} s; it said:\n"
                              f"{output.decode(errors='replace')}") from None
        lines = output.decode(errors="replace").splitlines()
        return process.returncode, sorted(lines) if case.unordered else lines

    def compare(self, case, what, bare, seen):
        # Counts are compared with the rings; process ids and the like are not the library's doing.
        shown = [[re.sub(r"\d{4,}|(?<=^emitted |\bprocess )\d+|(?<=^unfinished )\d+", "#", line) for line in lines]
                 for _, lines in (bare, seen)]
        if bare[0] == seen[0] and shown[0] == shown[1]:
            return
        raise Failure(f"{what}: without the library status {bare[0]} and\n  "
                      + "\n  ".join(bare[1]) + f"\nbut now status {seen[0]} and\n  "
                      + "\n  ".join(seen[1]))

    def check(self, case, flavour):
        bare = self.run(case, flavour, {})
        if case.status is not None and bare[0] != case.status:
            raise Failure(f"status {bare[0]} without the library; it said:\n  "
                          + "\n  ".join(bare[1]))
        preload = {case.preload_as: self.library}
        if case.group == "arm64":  # told to the emulator, for the program only
            preload = {"QEMU_SET_ENV": f"LD_PRELOAD={self.programs}/arm64/libweft.so"}
        self.compare(case, "with the library alone", bare, self.run(case, flavour, preload))
        with tempfile.TemporaryDirectory(prefix="weft-matrix-") as empty:
            os.chmod(empty, 0o755)
            self.compare(case, "before any agent", bare,
                         self.run(case, flavour, dict(preload, WEFT_DIR=empty)))
        for enabled in (False, True):
            with tempfile.TemporaryDirectory(prefix="weft-matrix-") as parent:
                os.chmod(parent, 0o755)
                with WeftFolder(os.path.join(parent, "weft"), clock=case.clock) as folder:
                    environment = dict(preload, WEFT_DIR=folder.path)
                    witness = None
                    if enabled and case.group == "system":
                        witness = Witness(self.programs, parent)
                        environment |= witness.environment(self.library)
                    if enabled:
                        dump = ("lttng_ust_statedump:*",) if case.statedump else ()
                        folder.enable("matrix:*", *dump, mode=case.mode,
                                      subbuf_shift=case.subbuf_shift, contexts=case.contexts)
                    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                    seen = self.run(case, flavour, environment)
                    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                    folder.settle()
                    self.compare(case, "with events enabled" if enabled else "with none enabled",
                                 bare, seen)
                    self.check_books(case, folder, witness.lines() if witness else seen[1], enabled)
                    if case.clock == "monotonic":
                        self.check_times(folder, begin, end)

    def check_books(self, case, folder, lines, enabled):
        if folder.strange:
            raise Failure(f"the doorbell got {folder.strange}")
        emitted, unfinished, sharing = (
            sum(int(line.split()[1]) for line in lines if line.startswith(word + " "))
            for word in ("emitted", "unfinished", "sharing"))
        recorded, discarded = folder.counts()
        lost = sum(discarded.values())
        books = (f"emitted {emitted}, perhaps {unfinished} more, recorded {recorded}, discarded "
                 f"{ {k: v for k, v in discarded.items() if v} }, {len(folder.rings)} ring sets")
        if self.verbose:
            print(f"      {books}")
        expected = case.books if enabled else "none"
        good = {"exact": recorded + lost == emitted and (recorded > 0 or emitted == 0),
                "killed": 0 < emitted <= recorded + lost <= emitted + unfinished,
                "all": recorded == emitted and emitted > 0,
                "none": recorded + lost == 0,
                "named": recorded + lost == 0 and folder.named,
                "some": 0 < recorded + lost <= emitted,
                "any": True}[expected]
        # If a ring set was made after all, its name was taken back.
        good = good and (not folder.named or expected in ("named", "any"))
        good = good and not any(discarded[reason] for reason in case.never)
        if not good:
            raise Failure(f"{books}; expected: {expected}")
        if enabled and case.sharing and sharing == 0:
            raise Failure(f"{books}; none of a child that shares its parent's memory")
        if case.statedump and enabled:
            self.check_statedumps(case, folder)

    @staticmethod
    def check_times(folder, begin, end):
        for ring in folder.rings.values():
            wrong = [time for time in ring.times if not begin <= time <= end]
            if wrong:
                raise Failure(f"process {ring.pid}: recorded {(wrong[0] - begin) / 1e9} s after the program's start, "
                              f"which ran for {(end - begin) / 1e9} s")

    @staticmethod
    def check_statedumps(case, folder):
        for ring in folder.rings.values():
            dumped = ring.dumped
            whole = (dumped.get("start", 0) > 0
                     and dumped["start"] == dumped.get("end") == dumped.get("procname")
                     and (case.statedump == "any"
                          or (dumped.get("bin_info", 0) > 2) == (case.statedump == "objects"))
                     and dumped.get("build_id", 0) <= dumped.get("bin_info", 0))
            if not whole:
                raise Failure(f"statedump {dumped}, expected: {case.statedump}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--programs", required=True, help="where CMake put the programs")
    parser.add_argument("--group")
    parser.add_argument("--only", help="one case of the group")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    runner = Runner(arguments.library, arguments.programs, arguments.verbose)
    passed = failed = skipped = 0
    for case in cases.CASES:
        if arguments.group not in (None, case.group) or arguments.only not in (None, case.name):
            continue
        for flavour in case.flavours:
            name = f"{case.group}/{case.name} ({flavour})"
            reason = hindrance(case, flavour)
            if reason is not None:
                skipped += 1
                print(f"SKIP  {name}: {reason}", flush=True)
                continue
            try:
                runner.check(case, flavour)
            except (Failure, ValueError) as failure:
                failed += 1
                print(f"FAIL  {name}: {failure}", flush=True)
            else:
                passed += 1
                print(f"ok    {name}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed + skipped == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
