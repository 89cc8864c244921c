# SPDX-License-Identifier: Apache-2.0
"""Every bench uses this to show what it measured: a line for each target and, at the end, RESULT
{json}. Options of all:

--gate   the exit status is 1, too, where a target's ratio is worse than the one in bench/ratios.json by more than its
         tolerance; where a target has none there, where it is missed. In that file a target has a number, or a number
         and a tolerance of its own: where runs differ more, and for times and sizes that have no peer in the same run
--smoke  the least that runs all of it: figures mean nothing, and no target is judged
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
from typing import NamedTuple


RATIOS = pathlib.Path(__file__).resolve().parent / "ratios.json"
SKIPPED = 77  # exit status: what the bench needs is not here (ctest's SKIP_RETURN_CODE)


class Options(NamedTuple):
    gate: bool
    smoke: bool
    rest: list


def options(argv):
    """Takes those of all benches out of the arguments."""
    return Options("--gate" in argv, "--smoke" in argv,
                   [argument for argument in argv if argument not in ("--gate", "--smoke")])


def skip(reason):
    print(reason, flush=True)
    return SKIPPED


def machine():
    model = "unknown CPU"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release()}"


class Measured(NamedTuple):
    """The figures of several rounds."""
    median: float
    least: float
    greatest: float


def measured(function, *rounds):
    """Returns `function` of the medians, and its least and greatest value in one round. Each
    argument is a list with a figure of every round, so that only figures of the same round are
    compared."""
    each = [function(*figures) for figures in zip(*rounds)]
    return Measured(function(*map(statistics.median, rounds)), min(each), max(each))


def spread(values):
    """Returns the figures of all rounds unchanged."""
    return measured(lambda value: value, values)


def median_of(figure):
    return figure.median if isinstance(figure, Measured) else figure


def text_of(figure):
    """Returns "12.34 (11.90..13.02)"; without the parentheses if there was one round."""
    if not isinstance(figure, Measured):
        return "" if figure is None else f"{figure:.2f}"
    return f"{figure.median:.2f} ({figure.least:.2f}..{figure.greatest:.2f})"


def as_json(figure):
    """Returns the value and its spread, [least, greatest]."""
    if not isinstance(figure, Measured):
        return None if figure is None else round(figure, 3), None
    return round(figure.median, 3), [round(figure.least, 3), round(figure.greatest, 3)]


def ratio_of(target):
    """Returns the number of a target that bench/ratios.json stores: a ratio itself, or another figure divided by the
    peer's, or by the target's limit if it has no peer. None: it has none."""
    value, of = target["value"], target["peer"] or target["limit"]
    if value is None or target["unit"] == "ratio":
        return value
    return value / of if of else None


class Failed(Exception):
    """Something could not be measured."""


class OfPeer(NamedTuple):
    """A limit: this many times the peer's figure."""
    times: float


class Report:
    """The targets of one bench, printed as they are measured. `where`: the machine, if it is not
    this one. `expected`: those that have an entry even if the run never measures them, {name:
    (unit, limit, better)}. `chosen`: what options() found. `notes`: members of RESULT."""

    def __init__(self, bench, ours="", peer="", where=None, expected=None, chosen=None):
        self.bench = bench
        self.chosen = chosen or Options(False, False, [])
        self.notes = {}
        self.columns = f"{'':<66} {ours:>26} {peer:>26} {'better':>7} {'limit':>10}"
        self.machine = where or machine()
        self.expected = expected or {}
        self.targets = []
        self.failed = False

    def header(self):
        print(self.columns, flush=True)

    def figure(self, name, value, peer=None, **more):
        """Adds an expected target. `more`: members of its entry."""
        unit, limit, better = self.expected[name]
        if isinstance(limit, OfPeer):
            limit = None if peer is None else limit.times * median_of(peer)
        self.target(name, unit, value, peer, limit, better, **more)

    def attempt(self, measure, *arguments):
        """Returns the result of measure(). If measure() fails, prints that and returns None, and
        the bench goes on."""
        try:
            return measure(*arguments)
        except (Failed, OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            self.failed = True
            print(f"    {measure.__name__}: {type(error).__name__}: {error}", flush=True)
            return None

    def target(self, name, unit, value, peer, limit, better, **more):
        """value and peer: Measured, or a number if there was one round. value None: it was not
        measured, and is not met. peer None: there is none. limit None: unknown, because the peer
        was not measured."""
        median = median_of(value)
        met = (median is not None and limit is not None and
               (median <= limit if better == "lower" else median >= limit))
        rounded, value_spread = as_json(value)
        peer_median, peer_spread = as_json(peer)
        self.targets.append({"name": name, "unit": unit, "value": rounded, "spread": value_spread,
                             "peer": peer_median, "peer_spread": peer_spread,
                             "limit": None if limit is None else round(limit, 3), "better": better,
                             "met": met, **more})
        value_text = "not measured" if value is None else text_of(value)
        limit_text = "" if limit is None else f"{limit:.2f}"
        judged = "smoke" if self.chosen.smoke else "met" if met else "MISSED"
        print(f"{name:<66} {value_text:>26} {text_of(peer):>26} {better:>7} {limit_text:>10}  {judged}  [{unit}]",
              flush=True)

    def regressed(self):
        """Returns a line for each target that --gate fails."""
        stored = json.loads(RATIOS.read_text(encoding="utf-8"))
        tolerance, ratios = stored["tolerance"], stored["ratios"].get(self.bench, {})
        found = []
        for target in self.targets:
            known, now = ratios.get(target["name"]), ratio_of(target)
            if known is None:
                if not target["met"]:
                    found.append(f"{target['name']}: missed, and no ratio of it is stored")
                continue
            before, margin = known if isinstance(known, list) else (known, tolerance)
            # A margin of 1 is twice as much, or half as much.
            worse = now is None or (now > before * (1 + margin) if target["better"] == "lower" else
                                    now < before / (1 + margin))
            if worse:
                found.append(f"{target['name']}: {'not measured' if now is None else f'{now:.2f}'}, was {before:.2f}")
        return found

    def result(self):
        """Prints the last line; returns the bench's exit status."""
        measured_names = {target["name"] for target in self.targets}
        for name in self.expected:
            if name not in measured_names:
                self.figure(name, None)
        if self.chosen.smoke:
            # A smoke run succeeds where all of it ran.
            self.failed |= any(target["value"] is None for target in self.targets)
            self.notes["smoke"] = True
        if self.chosen.gate:
            self.notes["regressed"] = self.regressed()
            for line in self.notes["regressed"]:
                print(f"gate: {line}", flush=True)
            self.failed |= bool(self.notes["regressed"])
        print("RESULT " + json.dumps({"bench": self.bench, "machine": self.machine, **self.notes,
                                      "targets": self.targets}), flush=True)
        return 1 if self.failed else 0
