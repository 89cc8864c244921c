#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest's side of ./dev bench kmod: inside.py PROGRAM MODULE PEER CALLS ROUNDS, started by run.

Measures every case with weft.ko and with LTTng in turns and writes /out/result.json:
{"cases": {CASE: {"none"|"weft"|"lttng": [instructions a call, ...]}}, "records": {CASE: records a call},
"resident": {"weft"|"lttng": bytes}}.
"""

import json
import os
import pathlib
import subprocess
import sys

CHANNEL = ["--overwrite", "--num-subbuf=4", "--subbuf-size=1M"]
EVENTS = ["lttng", "enable-event", "--kernel", "--channel=ch"]
GETPPID = [EVENTS + ["--syscall", "getppid"]]
FUNCTION = "__x64_sys_getppid"
# Case -> what LTTng is told to do; the cases of weft are in program.cc.
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
        self.cases, self.records = {}, {}

    def note(self, case, tracer, value):
        self.cases.setdefault(case, {}).setdefault(tracer, []).append(value)

    def measure(self, case):
        cost, records = run(self.program, case, self.calls).split()
        return float(cost), float(records)

    def weft(self, case):
        cost, self.records[case] = self.measure(case)
        self.note(case, "weft", cost)

    def lttng(self, case):
        run("lttng", "create", case, "--snapshot", f"--output=/tmp/{case}")
        run("lttng", "enable-channel", "--kernel", "ch", *CHANNEL)
        for command in PEER[case]:
            run(*command)
        run("lttng", "start")
        self.note(case, "lttng", self.measure("none")[0])
        run("lttng", "stop")
        run("lttng", "destroy", case)

    def round(self):
        self.note("none", "none", self.measure("none")[0])
        for case in (*PEER, *ONLY_WEFT):
            self.weft(case)
            if case in PEER:
                self.lttng(case)


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
    for _ in range(int(rounds)):
        bench.round()
    result = {"cases": bench.cases, "records": bench.records,
              "resident": {"weft": resident("weft"), "lttng": resident("lttng")}}
    pathlib.Path("/out/result.json").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
