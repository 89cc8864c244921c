# SPDX-License-Identifier: Apache-2.0
"""Finds skipped tests in ctest's output of a part, and compares them with the list of lawful
reasons.

ctest counts a program that passes as one passed test, even if the program skipped some of its
tests. A skipped test that tests/lawful_skips.txt does not explain fails its part.
"""

import pathlib
import re
import xml.etree.ElementTree

LAWFUL = pathlib.Path(__file__).resolve().parent.parent / "tests" / "lawful_skips.txt"
# This is enough for the whole output of a test that passed; otherwise ctest keeps 1 KiB of it.
CTEST_OPTIONS = ("--test-output-size-passed", "100000000")

GTEST = re.compile(r"^[^\n]*: Skipped\n(.*?)\n\[  SKIPPED \] ([\w./]+)(?: \(|,)", re.MULTILINE | re.DOTALL)
UNITTEST = re.compile(r"\.\.\. .*skipped (['\"])(.*)\1$", re.MULTILINE)
UNITTEST_SUM = re.compile(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)
MATRIX = re.compile(r"^SKIP  (.*?): (.*)$", re.MULTILINE)


def in_output(test, text):
    """Returns (name, reason) of each skipped test in what the program `test` printed."""
    found = [(name, " ".join(reason.split())) for reason, name in GTEST.findall(text)]
    python = [(test, reason) for _, reason in UNITTEST.findall(text)]
    unnamed = sum(map(int, UNITTEST_SUM.findall(text))) - len(python)
    found += python + MATRIX.findall(text)
    if unnamed > 0:
        found.append((test, f"{unnamed} more, of which the program printed no reason (unittest: -v)"))
    return found


def in_results(path):
    """Returns (name, reason) of each test that ctest's JUnit file `path` reports as skipped."""
    found = []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        text = case.findtext("system-out") or ""
        inside = in_output(case.get("name"), text)
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            inside = inside or [(case.get("name"), (text.strip().splitlines() or ["not run"])[-1])]
        found += inside
    return found


def unlawful(found):
    """Returns those of `found` whose reason no line of the list matches."""
    lines = LAWFUL.read_text(encoding="utf-8").splitlines()
    lawful = [re.compile(line) for line in lines if line and not line.startswith("#")]
    return [(name, reason) for name, reason in found if not any(r.fullmatch(reason) for r in lawful)]
