# SPDX-License-Identifier: Apache-2.0
"""How every bench shows what it measured: a line for each target and, at the end, RESULT {json}."""

import json
import os
import platform
import statistics
import subprocess
from typing import NamedTuple


def machine():
    model = "unknown CPU"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release()}"


class Measured(NamedTuple):
    """What several rounds said."""
    median: float
    least: float
    greatest: float


def measured(function, *rounds):
    """`function` of the medians, and its least and greatest of one round. Each argument is a list with a
    figure of every round; what is compared was measured in the same one."""
    each = [function(*figures) for figures in zip(*rounds)]
    return Measured(function(*map(statistics.median, rounds)), min(each), max(each))


def spread(values):
    """One figure of every round as it is."""
    return measured(lambda value: value, values)


def median_of(figure):
    return figure.median if isinstance(figure, Measured) else figure


def text_of(figure):
    """12.34 (11.90..13.02); without the parentheses where there was one round."""
    if not isinstance(figure, Measured):
        return "" if figure is None else f"{figure:.2f}"
    return f"{figure.median:.2f} ({figure.least:.2f}..{figure.greatest:.2f})"


def as_json(figure):
    """The value and its spread, [least, greatest]."""
    if not isinstance(figure, Measured):
        return None if figure is None else round(figure, 3), None
    return round(figure.median, 3), [round(figure.least, 3), round(figure.greatest, 3)]


class Failed(Exception):
    """Something could not be measured."""


class OfPeer(NamedTuple):
    """A limit: so many times the peer's figure."""
    times: float


class Report:
    """Targets of one bench, printed as they come. `where`: the machine, if it is not this one. `expected`: those that
    have an entry even if the run never measures them, {name: (unit, limit, better)}."""

    def __init__(self, bench, ours="", peer="", where=None, expected=None):
        self.bench = bench
        self.columns = f"{'':<66} {ours:>26} {peer:>26} {'better':>7} {'limit':>10}"
        self.machine = where or machine()
        self.expected = expected or {}
        self.targets = []
        self.failed = False

    def header(self):
        print(self.columns, flush=True)

    def figure(self, name, value, peer=None):
        """An expected target."""
        unit, limit, better = self.expected[name]
        if isinstance(limit, OfPeer):
            limit = None if peer is None else limit.times * median_of(peer)
        self.target(name, unit, value, peer, limit, better)

    def attempt(self, measure, *arguments):
        """What measure() says; None where it fails: that is printed, and the bench goes on."""
        try:
            return measure(*arguments)
        except (Failed, OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            self.failed = True
            print(f"    {measure.__name__}: {type(error).__name__}: {error}", flush=True)
            return None

    def target(self, name, unit, value, peer, limit, better):
        """value and peer: Measured, or a number where there was one round. value None: it was not
        measured, and is not met. peer None: there is none. limit None: unknown, because the peer was not measured."""
        median = median_of(value)
        met = (median is not None and limit is not None and
               (median <= limit if better == "lower" else median >= limit))
        rounded, value_spread = as_json(value)
        peer_median, peer_spread = as_json(peer)
        self.targets.append({"name": name, "unit": unit, "value": rounded, "spread": value_spread,
                             "peer": peer_median, "peer_spread": peer_spread,
                             "limit": None if limit is None else round(limit, 3), "better": better,
                             "met": met})
        value_text = "not measured" if value is None else text_of(value)
        limit_text = "" if limit is None else f"{limit:.2f}"
        print(f"{name:<66} {value_text:>26} {text_of(peer):>26} {better:>7} {limit_text:>10}  "
              f"{'met' if met else 'MISSED'}  [{unit}]", flush=True)

    def result(self):
        """The last line. The bench's exit status."""
        measured_names = {target["name"] for target in self.targets}
        for name in self.expected:
            if name not in measured_names:
                self.figure(name, None)
        print("RESULT " + json.dumps({"bench": self.bench, "machine": self.machine,
                                      "targets": self.targets}), flush=True)
        return 1 if self.failed else 0
