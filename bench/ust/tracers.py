# SPDX-License-Identifier: Apache-2.0
"""The two tracers of bench/ust, behind one interface. run(program, config) records one run of
a program and returns what the program printed, how many events were discarded, and what is on
disk: bytes, and events as babeltrace2 counts them. check() compares that with what the program
emitted."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from bench.report import Failed

SUBBUFS = 4  # for each CPU
PATIENCE = 20  # seconds, with a daemon that ends


@dataclass
class Config:
    """The settings of a session. overwrite: flight recorder mode; subbuf_kib: size of a sub-buffer;
    children: with what the tracer documents for programs whose children, too, are to be traced;
    folder: where the trace lies, the tracer's own unless given; monotonic: weft reads
    CLOCK_MONOTONIC as LTTng always does (needs root); own_rseq: the program registers an rseq area
    of its own, so that weft uses the atomic slot; count: count the events on disk; trace: a file with
    the Trace that weft records instead of `event`; preload: a library that LTTng's program is started
    with; env: what the program's environment has beside."""
    event: str = "bench:*"
    subbuf_kib: int = 512
    overwrite: bool = False
    children: bool = False
    contexts: list = field(default_factory=list)
    filter: str = ""
    folder: str = ""
    monotonic: bool = False
    own_rseq: bool = False
    count: bool = True
    trace: str = ""
    preload: str = ""
    env: dict = field(default_factory=dict)


# glibc registers no rseq area; then bench/ust/program.c does.
OWN_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0", "BENCH_OWN_RSEQ": "1"}


@dataclass
class Outcome:
    text: str       # what the program printed
    discarded: int
    bytes: int      # of the trace's streams on disk
    counted: int    # events in them; None: they were not counted
    books: dict = field(default_factory=dict)  # weft's own: recorded, delivered, overwritten, lost


class OtherDaemon(Failed):
    """LTTng runs already, and not for this bench."""


class Incomplete(Failed):
    """Events were discarded: the run's figures are not of what was to be measured."""


def check(tracer, outcome, emitted, overwrite=False):
    """Raises Incomplete if events were discarded. Raises Failed if any other event is missing or is
    there twice."""
    said = (f"{tracer.name}: of {emitted} events {outcome.counted} are on disk, {outcome.discarded} discarded"
            + (f", {outcome.books}" if outcome.books else ""))
    books = outcome.books
    overwritten = books.get("overwritten", 0)
    right = outcome.counted + outcome.discarded + overwritten == emitted
    if books:
        right = right and (books["recorded"] + outcome.discarded == emitted and not books["lost"] and
                           books["delivered"] + overwritten == books["recorded"])
    elif overwrite:
        # LTTng does not count what it overwrote.
        right = 0 < outcome.counted <= emitted
    if not right:
        raise Failed(said)
    if outcome.discarded:
        raise Incomplete(said)


def count_events(trace):
    """Returns the number of events that babeltrace2 finds in a folder."""
    if tree_bytes(trace) == 0:
        return 0
    told = subprocess.run(["babeltrace2", trace, "-c", "sink.utils.counter", "-p",
                           "step=+0"], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE).stdout
    for line in told.splitlines():
        if "Event message" in line:
            return int(line.split()[0].replace(",", ""))
    raise Failed("babeltrace2 did not count: " + told)


CLOCK_SOURCE = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def tree_bytes(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*")
               if p.is_file() and p.name != "metadata" and p.suffix != ".idx")


def missing_peer():
    """Returns why LTTng cannot be measured here; None: it can."""
    lacking = [program for program in ("lttng", "lttng-sessiond", "babeltrace2") if not shutil.which(program)]
    if lacking:
        return f"there is no {lacking[0]}"
    compiled = subprocess.run(["gcc", "-E", "-"], input="#include <lttng/tracepoint.h>\n", text=True, check=False,
                              capture_output=True)
    return None if compiled.returncode == 0 else "there are no headers of LTTng-UST"


class Lttng:
    """LTTng-UST from Debian's packages, with a session daemon that only this bench uses. Close
    it."""
    name = "lttng"
    clock = "monotonic"

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="weft-bench-lttng-")
        # A process waits for its registration, however busy the machine is: else its first events would be missing.
        self.env = dict(os.environ, LTTNG_HOME=self.home, HOME=self.home, LTTNG_UST_REGISTER_TIMEOUT="-1")
        # All session daemons of root share one place, whatever LTTNG_HOME says.
        if self._lttng("list", check=False).returncode == 0:
            shutil.rmtree(self.home)
            raise OtherDaemon("there is an lttng-sessiond already, which would be measured too: end it first")
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=self.env,
                                       stderr=subprocess.DEVNULL)
        for _ in range(100):
            if self._lttng("list", check=False).returncode == 0:
                return
            time.sleep(0.1)
        self.close()
        raise Failed("lttng-sessiond does not answer")

    def close(self):
        self.daemon.terminate()
        try:
            self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # it waits for its consumer, which waits for a program
            self.daemon.kill()
            self.daemon.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def _lttng(self, *args, check=True, timeout=None):
        return subprocess.run(["lttng", "-n", "-q", *args], env=self.env, check=check, text=True, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, argv, config, look=None):
        """Does one run. It calls `look` with the trace's folder before the folder is removed."""
        out = os.path.join(config.folder or self.home, "trace")
        shutil.rmtree(out, ignore_errors=True)
        self._lttng("create", "b", "--output=" + out)
        try:
            return self._record(argv, config, look, out)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):  # of one that failed; the next has the same name
                self._lttng("destroy", "b", "--no-wait", check=False, timeout=PATIENCE)
            shutil.rmtree(out, ignore_errors=True)

    def _record(self, argv, config, look, out):
        self._lttng("enable-channel", "-u", "-s", "b", "c", f"--subbuf-size={config.subbuf_kib}k",
                    f"--num-subbuf={SUBBUFS}", "--overwrite" if config.overwrite else "--discard")
        if config.contexts:
            types = [a for c in config.contexts for a in ("-t", c)]
            self._lttng("add-context", "-u", "-s", "b", "-c", "c", *types)
        extra = ["--filter", config.filter] if config.filter else []
        self._lttng("enable-event", "-u", "-s", "b", "-c", "c", config.event, *extra)
        self._lttng("start", "b")
        env = self.env | config.env | (OWN_RSEQ if config.own_rseq else {})
        if config.preload:
            env = env | {"LD_PRELOAD": config.preload}
        if config.children:
            env = env | {"LD_PRELOAD": "liblttng-ust-fork.so"}
        ran = subprocess.run(argv, env=env, check=True, text=True, stdout=subprocess.PIPE)
        stopped = subprocess.run(["lttng", "-n", "stop", "b"], env=self.env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        lost = sum(int(n) for n in re.findall(r"(\d+) events? (?:was|were) discarded", stopped))
        self._lttng("destroy", "b")
        outcome = Outcome(ran.stdout, lost, tree_bytes(out), count_events(out) if config.count else None)
        if look is not None:
            look(out)
        return outcome


class Weft:
    """weft record from an install tree."""
    name = "weft"
    clock = None  # of the ring sets of the last run with the usual clock

    def __init__(self, install):
        self.weft = os.path.join(install, "bin", "weft")
        self.home = tempfile.mkdtemp(prefix="weft-bench-")

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, argv, config, look=None):
        """Does one run. It calls `look` with the trace's folder before the folder is removed."""
        out = os.path.join(config.folder or self.home, "trace")
        shutil.rmtree(out, ignore_errors=True)
        summary = os.path.join(self.home, "summary.json")
        command = [self.weft, "record", "--quiet", "--summary", summary, "-o", out,
                   *(["-f", config.trace] if config.trace else
                     ["--event", config.event, "--subbuf-size", f"{config.subbuf_kib}Ki",
                      "--subbufs", str(SUBBUFS)])]
        if config.overwrite:
            command += ["--mode", "overwrite"]
        if config.filter:
            command += ["--filter", config.filter]
        for context in config.contexts:
            command += ["--context", context]
        if config.monotonic:
            command = self._with_another_clock_source(command)
        env = os.environ | config.env | (OWN_RSEQ if config.own_rseq else {})
        ran = subprocess.run([*command, "--", *argv], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=env, check=False)
        if ran.returncode != 0:
            raise Failed("weft record failed: " + ran.stderr)
        with open(summary, encoding="utf-8") as file:
            trace = json.load(file)["traces"][0]
        books = {name: trace[name] for name in ("recorded", "delivered", "overwritten")}
        books["lost"] = sum(trace["lost"].values())
        outcome = Outcome(ran.stdout, sum(trace["discarded"].values()), tree_bytes(out),
                          count_events(out) if config.count else None, books)
        if look is not None:
            look(out)
        shutil.rmtree(out, ignore_errors=True)
        return outcome

    def _with_another_clock_source(self, command):
        """Starts it where the kernel's clock source seems to be none that weft reads itself: in a mount namespace."""
        if os.geteuid() != 0:
            raise Failed("the clock monotonic is chosen by a mount namespace, which needs root")
        fake = os.path.join(self.home, "clock_source")
        with open(fake, "w", encoding="ascii") as file:
            file.write("hpet\n")
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', fake,
                str(CLOCK_SOURCE), *command]
