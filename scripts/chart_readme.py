#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes charts/weft/README.md from values.yaml: a row for each value, with its default and its comment.

chart_readme.py [--check]: with --check only compares, and fails if the file is another one.
"""

import pathlib
import re
import sys

CHART = pathlib.Path(__file__).resolve().parents[1] / "charts/weft"
LINE = re.compile(r"^( *)([A-Za-z0-9]+):(?: (.*))?$")
HEAD = """# weft's chart

Installs weft in a cluster: controller, webhook, relay, and an agent on each node.
[docs/operations.md](../../docs/operations.md) tells how to install, use, upgrade and remove it.

This file is made by scripts/chart_readme.py from values.yaml.

| value | default | |
|---|---|---|
"""


def rows(text):
    """Returns [path, default, comment] of each value, and of each group of values that has a
    comment."""
    found, path, comment = [], [], []
    for line in text.splitlines()[2:]:
        text = line.strip()
        if text.startswith("#"):
            comment.append(text[1:].strip())
        elif not text:
            comment = []
        elif key := LINE.match(line):
            path[len(key[1]) // 2:] = [key[2]]
            found.append([".".join(path), key[3] or "", " ".join(comment)])
            comment = []
        else:  # a list in block style belongs to the last key
            found[-1][1] = f"{found[-1][1]} {text}".strip()
    return [row for row in found if row[1] or row[2]]


def render():
    table = ""
    for name, default, said in rows((CHART / "values.yaml").read_text()):
        table += f"| `{name}` | {f'`{default}`' if default else ''} | {said} |\n"
    return HEAD + table


def main():
    readme = CHART / "README.md"
    if "--check" not in sys.argv[1:]:
        readme.write_text(render())
    elif not readme.exists() or readme.read_text() != render():
        sys.exit("charts/weft/README.md is not what values.yaml says: run scripts/chart_readme.py")


if __name__ == "__main__":
    main()
