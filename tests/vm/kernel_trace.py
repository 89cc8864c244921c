# SPDX-License-Identifier: Apache-2.0
"""Reads kernel events of a folder of CTF with babeltrace2."""

import pathlib
import re
import subprocess

# A field in babeltrace2's output.
FIELD = re.compile(r'(\w+) = (?:\( (".*?") : container = -?\d+ \)|("(?:[^"\\]|\\.)*")|(-?\d+))')


def events_in(folder):
    """Returns [(name, {field: value})], in the order of time. Nothing may have been discarded."""
    return [(name, fields) for _, name, fields in timed_events_in(folder)]


def timed_events_in(folder):
    """Returns [(ns since the epoch, name, {field: value})]."""
    done = subprocess.run(["babeltrace2", "--no-delta", "--clock-seconds", str(folder)], capture_output=True,
                          text=True, check=True)
    if done.stderr:
        raise AssertionError(f"babeltrace2 {folder}: {done.stderr}")
    found = []
    for line in done.stdout.splitlines():
        seconds, rest, name = re.match(r"\[(\d+)\.(\d{9})\] .*?\b(\w+): \{", line).groups()
        fields = {key: label or text or number for key, label, text, number in FIELD.findall(line)}
        found.append((int(seconds + rest), name, {key: value.strip('"') for key, value in fields.items()}))
    return found


def bytes_in(folder):
    """Returns everything that is stored below a folder."""
    return b"".join(f.read_bytes() for f in sorted(pathlib.Path(folder).rglob("*")) if f.is_file())
