#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev test: builds what the chosen parts need, runs them, and ends with a table.

Parts run side by side in three lanes: those of the release build mostly wait for processes, those
with builds of their own compile, and the cluster is mostly idle, with the guests (emulated machines)
before it. That lane is the longest: the parts that only compute, and wait for no process, come last in
the others, at a low priority that leaves it three quarters of the machine. They use what the cluster's
tests leave. What the cluster consists of is built from the very start, at this priority, too, so that
it is there when the guests are done. One part alone prints as it goes; several print their runner's
summary when they end, and their whole log where they fail.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from scripts import skips, whole_run

TOP = pathlib.Path(__file__).resolve().parent.parent
LOGS = TOP / "build" / "logs"
CLUSTER_BUILD = ["./dev", "cluster", "build"]
GUESTS = "2"  # at a time: each is a busy process with 2 GiB of memory
JOBS = str(os.cpu_count() or 2)
GIVE_WAY = ("model", "lint", "fuzz")  # to the parts of other lanes
SPACE = 18  # GB that all parts write from nothing: build folders 10, caches (Go's, ccache's, kernels) 8
PATIENCE = 60  # seconds that tests have to remove what they made, after a signal
SUMMARY = re.compile(r"\d+% tests passed, .*|(lint|fresh): \d+ checks passed, .*")

FUZZ_LONG = 240  # seconds per target


def configure(preset, *definitions):
    return [["cmake", "--preset", preset, "-Wno-dev", "--log-level=NOTICE", "-DWEFT_TESTS=ON", *definitions],
            ["cmake", "--build", "--preset", preset]]


def ctest(preset, label, without=(), jobs=JOBS):
    command = ["ctest", "--preset", preset, "-j", jobs, "--no-tests=error", "-L", f"^({label})$"]
    return [command + (["-LE", f"^({'|'.join(without)})$"] if without else [])]


def parts(args):
    """Name of each part -> its commands. The order within a lane is the order of running."""
    form = ["--quick"] if args.quick else [] if args.long else ["--short"]
    lint = ["python3", "scripts/lint.py", *form]
    http = f"-DWEFT_SANITIZE_HTTP={'ON' if args.long else 'OFF'}"
    no_http = [] if args.long else ["http"]
    release = {
        "unit": ctest("release", "unit"),
        "local": ctest("release", "local"),
        "matrix": ctest("release", "matrix"),
        "fresh": [["scripts/fresh.sh"]],
        "model": ctest("release", "model"),
        "lint": [lint],
    }
    own_build = {
        # The label noasan stands, with the reason, where a test cannot run so. The matrix: its libweft.so
        # stops at undefined behaviour.
        "asan": configure("asan", http) + ctest("asan", "unit|local|matrix", ["noasan", *no_http]),
        "tsan": configure("tsan", http) + ctest("tsan", "threads", no_http),
        # The preset asan has the fuzz targets, too: slow ones, which are quick to build.
        "fuzz": configure("fuzz", f"-DWEFT_FUZZ_SECONDS={FUZZ_LONG}") + ctest("fuzz", "fuzz")
                if args.long else configure("asan", http) + ctest("asan", "fuzz"),
    }
    kernels = ["6.1", "6.12", "6.12-debug", "6.12-kcfi"] if args.long else []
    guests = "vm|vm_long|vm_debug|vm_cluster" if args.long else "vm"
    # The first waits for the build that cluster_build() began.
    for_cluster = [CLUSTER_BUILD, ["python3", "-B", "deploy/images/images.py"]]
    cluster = {
        "vm": [["./dev", "kmod", "build", *kernels]] + (for_cluster if args.long else []) +
              ctest("release", guests, jobs=GUESTS),
        "cluster": for_cluster + ctest("release", "cluster|cluster_long" if args.long else "cluster"),
    }
    return release, own_build, cluster


class Part:
    """One part. It runs its commands one after the other, until one fails."""

    def __init__(self, name, commands, live):
        self.name, self.commands, self.live = name, commands, live
        self.gives_way = name in GIVE_WAY and not live
        self.group = None  # the running command's process group
        self.is_ended = False
        self.log = LOGS / f"{name}.log"
        self.seconds, self.cpu_seconds, self.passed, self.summary = 0.0, 0.0, False, "did not run"
        self.skipped = []  # (test, reason)

    def run(self, say):
        say(f"== {self.name}: started")
        start = time.monotonic()
        with open(self.log, "w", encoding="utf-8") as log:
            self.passed = all(self.run_one(command, log) for command in self.commands)
            for test, reason in skips.unlawful(self.skipped):
                self.passed = False
                print(f"skipped for no lawful reason (tests/lawful_skips.txt): {test}: {reason}", file=log)
        self.seconds = time.monotonic() - start
        text = self.log.read_text(encoding="utf-8", errors="replace")
        found = [line for line in text.splitlines() if SUMMARY.match(line)]
        self.summary = found[-1] if found else "no summary: it ended before its runner did"
        if not self.passed and not self.live:
            say(f"== {self.name}: failed; its log:\n{text}")
        say(f"== {self.name}: {self.summary}\n== {self.name}: {self.seconds:.0f} s")

    def run_one(self, command, log):
        results = LOGS / f"{self.name}.xml"
        if command[0] == "ctest":
            command = [*command, *skips.CTEST_OPTIONS, "--output-junit", str(results)]
            results.unlink(missing_ok=True)
        print("$", *command, file=log, flush=True)
        nice = ["nice", "-n", whole_run.programs.NICE] if self.gives_way else []
        with subprocess.Popen(nice + command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=self.gives_way,
                              process_group=None if self.gives_way else 0) as process:
            self.group = process.pid
            if self.gives_way:
                step_back(process.pid)
            if self.is_ended:
                self.end()
            for line in process.stdout:
                log.write(line)
                if self.live:
                    print(line, end="", flush=True)
            _, status, used = os.wait4(process.pid, 0)
            self.group = None
            process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds += used.ru_utime + used.ru_stime
        if command[0] == "ctest" and results.exists():
            self.skipped += skips.in_results(results)
        if process.returncode != 0:
            print(f"exit status {process.returncode}: {' '.join(command)}", file=log)
        return process.returncode == 0

    def end(self, number=signal.SIGINT):
        """Ends the running command, and begins no other. What only computes is killed; tests get what
        the terminal would send, so that they can remove what they made."""
        self.is_ended = True
        if self.group is not None:
            end_group(self.group, signal.SIGKILL if self.gives_way else number)


def end_group(group, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def say_locked():
    lock = threading.Lock()

    def say(text):
        with lock:
            print(text, flush=True)

    return say


class Signals:
    """SIGTERM and SIGINT, which end this program with all that it started. Handlers only take a note:
    an exception could come while a process is made, and nothing would know of that process."""

    def __init__(self):
        self.number = 0  # the first one's, or 0
        # Where a shell ignores SIGINT for what it runs in the background, the tests would inherit that.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.note)

    def note(self, number, _):
        self.number = self.number or number

    def wait(self, is_over):
        """Returns when `is_over()`, or when a signal has come."""
        while not (self.number or is_over()):
            time.sleep(0.1)


def run_lanes(lanes, signals):
    say = say_locked()
    is_over = threading.Event()

    def run_lane(lane):
        for part in lane:
            if not is_over.is_set():
                part.run(say)

    everything = [part for lane in lanes for part in lane]
    threads = [threading.Thread(target=run_lane, args=(lane,), daemon=True) for lane in lanes]
    for thread in threads:
        thread.start()
    signals.wait(lambda: not any(thread.is_alive() for thread in threads))
    is_over.set()
    for number in (signal.SIGINT, signal.SIGKILL):
        for part in everything:
            part.end(number)
        until = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0, until - time.monotonic()))


def step_back(session):
    """If the kernel distributes processor time by session (autogroup), `nice` counts inside one
    only."""
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{session}/autogroup").write_text(whole_run.programs.NICE, encoding="ascii")


@contextlib.contextmanager
def cluster_build(wanted):
    """Builds the cluster's programs in the background; what is left of it ends with the block."""
    if not wanted:
        yield
        return
    with open(LOGS / "cluster-build.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(CLUSTER_BUILD, cwd=TOP, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, start_new_session=True)
        step_back(process.pid)
    try:
        yield
    finally:
        if process.poll() is None:
            end_group(process.pid, signal.SIGKILL)
        process.wait()


def parse(argv):
    parser = argparse.ArgumentParser(prog="./dev test")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="unit, and lint of changed files")
    length.add_argument("--long", action="store_true", help="the long form of every part")
    parser.add_argument("parts", nargs="*", metavar="PART")
    args = parser.parse_args(argv)
    lanes = parts(args)
    known = [name for lane in lanes for name in lane]
    for name in args.parts:
        if name not in known:
            parser.error(f"no part '{name}'; there are: {' '.join(known)}")
    wanted = args.parts or (["unit", "lint"] if args.quick else known)
    live = len(wanted) == 1
    return args, [[Part(name, commands, live) for name, commands in lane.items() if name in wanted]
                  for lane in lanes]


def build_release(needed, signals):
    """Builds, and returns the seconds it took, 0 if it is not needed, None if it failed."""
    if not needed:
        return 0
    start = time.monotonic()
    with subprocess.Popen(["./dev", "build", "--all"], cwd=TOP, process_group=0) as process:
        signals.wait(lambda: process.poll() is not None)
        if signals.number:
            end_group(process.pid, signal.SIGINT)
    return time.monotonic() - start if process.returncode == 0 else None


def warn_of_little_space(least):
    """Without space left each program says so in its own way, or not at all."""
    free = shutil.disk_usage(TOP).free / 1e9
    if free < least:
        print(f"test: {free:.1f} GB are free on the disk of {TOP}; all parts take some {SPACE} from nothing. "
              "If one of them fails for lack of space, make room and run it again.", flush=True)


def main(argv):
    args, lanes = parse(argv)
    signals = Signals()
    # Tests read this to choose between their short and their long form.
    os.environ["WEFT_LONG"] = "1" if args.long else "0"
    if "WEFT_BABELTRACE2" not in os.environ:
        newer = subprocess.run(["scripts/newer_babeltrace2.sh"], cwd=TOP, check=False, text=True,
                               stdout=subprocess.PIPE)
        if newer.returncode == 0:
            os.environ["WEFT_BABELTRACE2"] = newer.stdout.strip()
    LOGS.mkdir(parents=True, exist_ok=True)
    is_whole = not (args.quick or args.long or args.parts)
    had = whole_run.already_there() if is_whole else []
    if is_whole:
        warn_of_little_space(1 if had else SPACE)
    start = time.monotonic()
    with cluster_build(any(CLUSTER_BUILD in part.commands for part in lanes[2])):
        built = build_release(lanes[0] or lanes[2], signals)
        if built is not None:
            run_lanes(lanes, signals)
    if signals.number:
        return 128 + signals.number
    if built is None:
        print("test: the release build failed")
        warn_of_little_space(1)
        return 1

    everything = [part for lane in lanes for part in lane]
    print(f"\n{'part':<8} {'result':<7} {'seconds':>7} {'of CPU':>7} {'skipped':>7}  summary")
    if built:
        print(f"{'build':<8} {'ok':<7} {built:>7.0f} {'':>7} {'':>7}  release, installed")
    for part in everything:
        print(f"{part.name:<8} {'ok' if part.passed else 'FAILED':<7} {part.seconds:>7.0f} {part.cpu_seconds:>7.0f} "
              f"{len(part.skipped):>7}  {part.summary}")
    seconds = time.monotonic() - start
    print(f"{'all':<8} {'':<7} {seconds:>7.0f}")
    for part in everything:
        for test, reason in part.skipped:
            print(f"skipped in {part.name}: {test}: {reason}")
    passed = all(part.passed for part in everything)
    if not passed:
        warn_of_little_space(1)
    if is_whole and passed:
        whole_run.write(seconds, had)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
