# SPDX-License-Identifier: Apache-2.0
"""How every bench shows what it measured: a line for each target and, at the end, RESULT {json}."""

import json
import os
import platform


def machine():
    model = "unknown CPU"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release()}"


class Report:
    """Targets of one bench, printed as they come."""

    def __init__(self, bench, ours="", peer=""):
        self.bench = bench
        self.columns = f"{'':<58} {ours:>12} {peer:>12} {'better':>7} {'limit':>10}"
        self.targets = []

    def header(self):
        print(self.columns, flush=True)

    def target(self, name, unit, value, peer, limit, better):
        """value None: it was not measured, and is not met. peer None: there is none."""
        met = value is not None and (value <= limit if better == "lower" else value >= limit)
        self.targets.append({"name": name, "unit": unit,
                             "value": None if value is None else round(value, 3),
                             "peer": None if peer is None else round(peer, 3),
                             "limit": round(limit, 3), "better": better, "met": met})
        value_text = "not measured" if value is None else f"{value:.2f}"
        peer_text = "" if peer is None else f"{peer:.2f}"
        print(f"{name:<58} {value_text:>12} {peer_text:>12} {better:>7} {limit:10.2f}  "
              f"{'met' if met else 'MISSED'}  [{unit}]", flush=True)

    def result(self):
        print("RESULT " + json.dumps({"bench": self.bench, "machine": machine(),
                                      "targets": self.targets}))
