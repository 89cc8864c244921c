# SPDX-License-Identifier: Apache-2.0
"""Records the last `./dev test` of all parts that passed: how long it took, and what existed
already when it began. bench/cluster reads it, since that run is too long to be repeated for a
number."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

from scripts import tidy_cache
from tests.cluster import programs

TOP = pathlib.Path(__file__).resolve().parent.parent
RECORD = TOP / "build/logs/whole-run.json"
PRESETS = ("release", "asan", "tsan")


def output(*command):
    return subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True).stdout


def compiled_before():
    """Returns the number of files in the compiler's cache."""
    if not shutil.which("ccache"):
        return 0
    return int(re.search(r"^files_in_cache\t(\d+)$", output("ccache", "--print-stats"), re.M).group(1))


def already_there():
    """Describes in words what a run from nothing would have to make."""
    go_cache = pathlib.Path(os.environ.get("GOCACHE") or pathlib.Path.home() / ".cache/go-build")
    there = {"build folders": any((TOP / "build" / name).exists() for name in PRESETS),
             "a compiler's cache": compiled_before() > 0,
             "clang-tidy's answers": tidy_cache.FOLDER.is_dir(),
             "the cluster's programs": programs.folder().is_dir(),
             "Go's build cache": go_cache.is_dir() and any(go_cache.iterdir())}
    return [what for what, is_there in there.items() if is_there]


def write(seconds, had):
    RECORD.write_text(json.dumps({
        "seconds": round(seconds), "had": had, "commit": output("git", "rev-parse", "HEAD").strip(),
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}) + "\n", encoding="utf-8")


def read():
    """Returns the record, or None."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else None
