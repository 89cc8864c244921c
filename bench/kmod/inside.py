#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest's side of ./dev bench kmod: inside.py PROGRAM MODULE PEER CALLS ROUNDS, started by run.

Measures every case with weft.ko and with LTTng in turns. Fails if weft.ko did not record exactly
what a case makes, or discarded anything. The records of LTTng are in /out/lttng/CASE/ROUND, and run
counts them, because the guest is too slow for that. Writes /out/result.json: {"cases": {CASE:
{"none"|"weft"|"lttng": [instructions a call, ...]}}, "calls": of each measurement, "resident":
{"weft"|"lttng": bytes}}.
"""

import json
import os
import pathlib
import subprocess
import sys

CHANNEL = ["--overwrite", "--num-subbuf=32", "--subbuf-size=1M"]  # all events of a measurement stay in there
EVENTS = ["lttng", "enable-event", "--kernel", "--channel=ch"]
GETPPID = [EVENTS + ["--syscall", "getppid"]]
FUNCTION = "__x64_sys_getppid"
# LTTng's commands by case; the cases of weft are in program.cc.
PEER = {
    "getppid": GETPPID,
    "contexts": GETPPID + [["lttng", "add-context", "--kernel", "--channel=ch", "-t", "vpid", "-t", "vtid",
                            "-t", "cgroup_ns", "-t", "pid_ns"]],
    "foreign": [EVENTS + ["--syscall", "getppid", "--filter", "$ctx.cgroup_ns == 1"]],
    "filter": [EVENTS + ["--syscall", "getppid", "--filter", "$ctx.tid == 999999"]],
    "unselected": [EVENTS + ["--syscall", "openat"]],
    "kprobe": [EVENTS + [f"--probe={FUNCTION}", "entry"]],
    "kretprobe": [EVENTS + [f"--function={FUNCTION}", "pair"]],
}
# Case -> records of a call; of weft and, where it has the case, of LTTng.
RECORDS = {"getppid": 2, "everywhere": 2, "contexts": 2, "foreign": 0, "foreign-many": 0, "filter": 0, "unselected": 0,
           "kprobe": 1, "kretprobe": 2}
ONLY_WEFT = ("everywhere", "foreign-many")


def run(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    """One guest's measurements."""

    def __init__(self, program, calls):
        self.program, self.calls = program, calls
        self.cases, self.made = {}, 0

    def note(self, case, tracer, value):
        self.cases.setdefault(case, {}).setdefault(tracer, []).append(value)

    def measure(self, case):
        cost, made, records, lost = run(self.program, case, self.calls).split()
        self.made = int(made)
        return float(cost), int(records), int(lost)

    def weft(self, case):
        cost, records, lost = self.measure(case)
        if (records, lost) != (self.made * RECORDS[case], 0):
            raise SystemExit(f"{case}: weft.ko made {records} records and lost {lost}, of {self.made} calls, "
                             f"each of {RECORDS[case]} records")
        self.note(case, "weft", cost)

    def lttng(self, case, number):
        run("lttng", "create", case, "--snapshot", f"--output=/out/lttng/{case}/{number}")
        run("lttng", "enable-channel", "--kernel", "ch", *CHANNEL)
        for command in PEER[case]:
            run(*command)
        run("lttng", "start")
        self.note(case, "lttng", self.measure("none")[0])
        run("lttng", "stop")
        run("lttng", "snapshot", "record")
        run("lttng", "destroy", case)

    def round(self, number):
        self.note("none", "none", self.measure("none")[0])
        for case in (*PEER, *ONLY_WEFT):
            self.weft(case)
            if case in PEER:
                self.lttng(case, number)


def resident(prefix):
    lines = [line.split() for line in pathlib.Path("/proc/modules").read_text().splitlines()]
    return sum(int(fields[1]) for fields in lines if fields[0].startswith(prefix))


def main():
    program, module, peer, calls, rounds = sys.argv[1:]
    os.environ.update(LTTNG_HOME="/tmp", HOME="/tmp")
    run("insmod", module)
    names = [path.stem for path in pathlib.Path(peer).rglob("lttng-*.ko")
             if "test" not in path.stem]
    run("modprobe", "-d", peer, "-a", *names)
    run("lttng-sessiond", "--daemonize")
    bench = Bench(program, calls)
    bench.measure("none")  # the first one after boot is never right
    for number in range(int(rounds)):
        bench.round(number)
    result = {"cases": bench.cases, "calls": bench.made,
              "resident": {"weft": resident("weft"), "lttng": resident("lttng")}}
    pathlib.Path("/out/result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
