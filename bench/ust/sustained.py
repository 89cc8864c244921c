# SPDX-License-Identifier: Apache-2.0
"""Measures for bench/ust how many events per second a tracer writes to disk without losing one.

All CPUs emit four-field events on a schedule of bursts, one a millisecond, for SECONDS. Before
that, WARM_BURSTS come eight times slower, so that neither tracer touches its memory for the first
time at full speed (a daemon has touched the memory of one of the tracers; the other gets it from
the kernel). A program that lost its CPU goes on at its rate and does not make up for the time
(program.c). A rate holds if the program kept it, the tracer discarded nothing, and every event is
in the files: counted by babeltrace2 in one more run at the best rate, by size in the others. A
machine of few CPUs, above all a virtual one, sometimes takes a CPU away for longer than any buffer
lasts. A rate is therefore given up only after TRIES runs that failed. A run begins when the disk
has finished deleting the files of the runs before, and has no slow moment (disk.py). Every second
try also begins with warm memory. Rates go up by STEP until one is given up, then half a step is
tried; tracers take turns rate by rate. Nothing here differs between tracers: buffers have the same
bytes, a run has dozens of times what they hold, and the files lie in the same folder of a disk.
"""

import json
import os
from dataclasses import dataclass

from bench.ust.tracers import count_events

SECONDS = 2
TRIES = 4
FIRST = 1.0   # million events per second, of all threads
STEP = 1.25
LEAST, MOST = 0.1, 100.0
WARM_BURSTS = 150  # program.c's
KEPT = 0.95   # of the rate, by the program: it has the CPUs' rest only
WARM_BYTES = 512 * 1024 * 1024


@dataclass
class Held:
    """The figures of a run that lost nothing."""
    rate: float     # events per second that the program reached
    events: int
    bytes: int


def warm(folder):
    """Makes free memory that need not come from a virtual machine's host, which takes several
    microseconds a page. This helps a run that fills the page cache at once; otherwise the kernel
    gives the memory back during the run."""
    name = os.path.join(folder, "warm")
    block = bytes(1024 * 1024)
    with open(name, "wb") as file:
        for _ in range(WARM_BYTES // len(block)):
            file.write(block)
    os.unlink(name)


class Search:
    """A search for the sustained rate of one tracer, with buffers of one size."""

    def __init__(self, tracer, program, config, threads, disk):
        self.tracer = tracer
        self.disk = disk
        self.program = program
        self.config = config
        self.threads = threads
        self.seconds, self.kept = SECONDS, KEPT
        self.best = None  # (rate, Held) of the highest rate that held
        self.held = None  # of the verified one

    def once(self, rate, warmed, verify=False):
        """Does one run at `rate` million events per second, with warm memory or without. Returns
        Held, or why the rate did not hold."""
        burst = max(1, round(rate * 1e6 / self.threads / 1000))
        bursts = round(self.seconds * 1000)
        events = self.threads * (burst * (bursts + WARM_BURSTS) + 100)
        if self.disk is not None:
            self.disk.rest()
        if warmed:
            warm(self.config.folder)
        argv = [self.program, "four", str(self.threads), str(bursts), str(burst), str(-burst)]
        counted = []
        look = (lambda trace: counted.append(count_events(trace))) if verify else None
        outcome = self.tracer.run(argv, self.config, look)
        reached = json.loads(outcome.text)["rate"]
        if outcome.discarded > 0:
            return f"{outcome.discarded} of {events} discarded"
        if reached < self.kept * burst * 1000 * self.threads:
            return f"the program reached {reached / 1e6:.2f} M/s"
        # The payload alone has 28 bytes.
        if outcome.bytes < 28 * events:
            return f"{outcome.bytes} bytes cannot be {events} events"
        if verify and counted[0] != events:
            return f"{events} emitted, {counted[0]} on disk"
        return Held(reached, events, outcome.bytes)

    def holds(self, rate, verify=False):
        for i in range(TRIES):
            warmed = i % 2 == 1
            result = self.once(rate, warmed, verify)
            if os.environ.get("BENCH_VERBOSE"):
                print(f"      {self.tracer.name} {rate:.2f} M/s{', warm' if warmed else ''}: {result}", flush=True)
            if isinstance(result, Held):
                self.best = (rate, result) if self.best is None or rate > self.best[0] else self.best
                return True
        return False

    def steps(self):
        """Searches, and yields after every rate, so that tracers take turns. At the end `held` is
        the run at the highest rate that held, verified by counting; None: none did."""
        rate = FIRST
        while rate > LEAST and not self.holds(rate):
            yield
            rate /= 2
        rate *= STEP
        while rate < MOST and self.best is not None and self.holds(rate):
            yield
            rate *= STEP
        self.holds(rate / STEP ** 0.5)
        yield
        while self.best is not None:
            rate, self.best = self.best[0], None
            if self.holds(rate, verify=True):
                self.held = self.best[1]
                return
            while rate > LEAST and self.best is None:
                yield
                rate /= STEP ** 0.5
                self.holds(rate)


def search(searches):
    """Runs all searches to their end, in turns; the one that was last begins the next turn."""
    running = [s.steps() for s in searches]
    while running:
        running = [steps for steps in running if next(steps, "end") != "end"][::-1]
