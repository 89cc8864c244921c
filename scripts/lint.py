#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev lint checks what a machine can check of weft's style.

Looks at what git tracks, or would if it were added; --quick: only at what differs from the upstream
branch (without one: from the commit before HEAD); --short: at all of them, with fewer of
clang-tidy's checks. tidy_cache.py remembers the sources in which clang-tidy found nothing. A header
that is made to be included by one other file, or many times, says so in a comment "lint: not
self-contained: REASON".
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from scripts import include_layers, tidy_cache

TOP = pathlib.Path(__file__).resolve().parent.parent
DATABASE = TOP / "build" / "release" / "compile_commands.json"
TIDY = TOP / "build" / "lint"  # the same database as clang-tidy can take it
# Flags of gcc's that clang refuses as an error, not as a warning.
GCC_ONLY = ("-fno-tree-loop-distribute-patterns",)
MAX_LINES = 800
MAX_COLUMNS = 100
# Half of clang-tidy's time are checks, which walk all that the headers declare; gcc has some of them, too. The
# short form has those that have found mistakes in such code and the house's own.
SHORT_CHECKS = "-*," + ",".join((
    *("bugprone-" + check for check in (
        "dangling-handle", "inaccurate-erase", "move-forwarding-reference", "redundant-branch-condition",
        "sizeof-expression", "suspicious-memset-usage", "switch-missing-default-case",
        "unchecked-optional-access", "undefined-memory-manipulation", "unused-local-non-trivial-variable",
        "unused-return-value", "use-after-move")),
    *("performance-" + check for check in (
        "for-range-copy", "inefficient-*", "move-const-arg", "noexcept-*", "unnecessary-copy-initialization")),
    "google-explicit-constructor", "modernize-use-override", "readability-function-size"))
# Words that hide which process, thread or user is meant; docs/glossary.md has the names for them.
VAGUE = re.compile(r"\b(nobody|everybody|anybody|somebody|whoever)\b", re.IGNORECASE)
WITH_TEXT = (".c", ".cc", ".h", ".md", ".py", ".sh", ".yaml")
MAY_BE_VAGUE = ("deploy/images/pack.py", "scripts/lint.py")  # the user `nobody`; the words above
COMMENT_REACH = 3  # a memory order's comment stands at most so many lines above it

CODE = (".c", ".cc", ".h", ".S")
WITH_SPDX = CODE + (".cmake", ".sh", ".py", ".pml", ".txt", ".yaml", ".yml")
PROGRAMS_WITHOUT_SUFFIX = ("dev", ".ci/run", "run")
DUAL = "Apache-2.0 OR GPL-2.0-only"

MEMORY_ORDER = re.compile(r"\bmemory_order(_|::)\w+|\b__ATOMIC_[A-Z_]+\b")
COMMENT = re.compile(r"//(?! SPDX)|/\*(?! SPDX)|^\s*\*")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FIRST_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<)', re.MULTILINE)
NOT_SELF_CONTAINED = re.compile(r"lint: not self-contained: \S")


def output(*command):
    return subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True).stdout


def new_files():
    return output("git", "ls-files", "-z", "--others", "--exclude-standard").split("\0")


def all_files():
    names = output("git", "ls-files", "-z").split("\0") + new_files()
    return [name for name in names if name and (TOP / name).is_file()]


def changed_files():
    for base in ("@{upstream}", "HEAD~1"):
        found = subprocess.run(["git", "rev-parse", "-q", "--verify", base], cwd=TOP, check=False,
                               capture_output=True, text=True)
        if found.returncode == 0:
            since = output("git", "merge-base", found.stdout.strip(), "HEAD").strip()
            return {*output("git", "diff", "--name-only", "-z", since).split("\0"), *new_files()}
    return set(all_files())


def read(name):
    return (TOP / name).read_text(encoding="utf-8", errors="replace")


def is_test(name):
    return bool(re.search(r"_(test|fuzz)\.\w+$|(^|/)(tests|bench)/", name))


def in_parallel(work, items):
    """Returns the complaints of `work` about each item, in the order of the items; an empty text is
    no complaint."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [said for said in pool.map(work, items) if said]


def complaint(command, title, stdin=None):
    ran = subprocess.run(command, cwd=TOP, check=False, capture_output=True, text=True, input=stdin)
    return "" if ran.returncode == 0 else f"{title}\n{ran.stdout}{ran.stderr}"


# --- the checks: each gets all files, the chosen ones and --short; it returns complaints ---

def check_licences(_, chosen, __):
    said = []
    for name in chosen:
        base = pathlib.Path(name).name
        if not name.endswith(WITH_SPDX) and base not in PROGRAMS_WITHOUT_SUFFIX:
            continue
        if name.startswith("LICENSES/"):
            continue
        head = "\n".join(read(name).splitlines()[:3])
        found = re.search(r"SPDX-License-Identifier: ([^\n*]+)", head)
        licence = found.group(1).strip() if found else "no SPDX line"
        allowed = {"GPL-2.0-only" if name.startswith("kmod/") else "Apache-2.0", DUAL}
        if licence not in allowed:
            said.append(f"{name}: {licence}; it should be {' or '.join(sorted(allowed))}")
    return said


def check_sizes(_, chosen, __):
    problems = []
    for name in chosen:
        if not name.endswith(CODE):
            continue
        lines = read(name).splitlines()
        if len(lines) > MAX_LINES:
            problems.append(f"{name}: {len(lines)} lines, more than {MAX_LINES}")
        problems += [f"{name}:{number}: more than {MAX_COLUMNS} columns"
                     for number, line in enumerate(lines, 1) if len(line) > MAX_COLUMNS]
    return problems


def check_words(_, chosen, __):
    said = []
    for name in chosen:
        if not name.endswith(WITH_TEXT) or name in MAY_BE_VAGUE:
            continue
        said += [f"{name}:{number}: '{found.group()}': name the process, thread or user that is meant"
                 for number, line in enumerate(read(name).splitlines(), 1) for found in VAGUE.finditer(line)]
    return said


def check_memory_orders(_, chosen, __):
    said = []
    for name in chosen:
        if not name.endswith(CODE) or is_test(name):
            continue
        lines = read(name).splitlines()
        for number, line in enumerate(lines):
            code = line.split("//")[0]
            near = lines[max(0, number - COMMENT_REACH):number + 1]
            if MEMORY_ORDER.search(code) and not any(COMMENT.search(text) for text in near):
                said.append(f"{name}:{number + 1}: memory order without a comment: {line.strip()}")
    return said


def check_layers(files, _, __):
    return include_layers.check(files, read)


def check_format(_, chosen, __):
    sources = [name for name in chosen if name.endswith((".c", ".cc", ".h"))]

    def first_place(name):
        said = complaint(["clang-format-19", "--dry-run", "-Werror", name], "").splitlines()
        return f"{said[1]}\n  (and more, perhaps) run: clang-format-19 -i {name}" if said else ""

    return in_parallel(first_place, sources)


def header_languages(files):
    """Returns, for each header, the suffixes of the sources that include it, directly or through
    headers."""
    languages = {name: set() for name in files if name.endswith(".h")}
    includes = {name: [inc for inc in INCLUDE.findall(read(name)) if inc in languages]
                for name in files if name.endswith((".c", ".cc", ".h"))}

    def mark(name, suffix):
        for header in includes[name]:
            if suffix not in languages[header]:
                languages[header].add(suffix)
                mark(header, suffix)

    for name in includes:
        if not name.endswith(".h"):
            mark(name, pathlib.Path(name).suffix)
    for header, found in languages.items():
        if header.startswith("lib/abi/"):
            found.update((".c", ".cc"))
        elif not found:
            found.add(".cc")
    return languages


@functools.cache
def compile_database():
    """Returns the compile commands that cmake would have used."""
    subprocess.run(["cmake", "--preset", "release", "-Wno-dev", "-DWEFT_TESTS=ON"], cwd=TOP, check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(DATABASE.read_text(encoding="utf-8"))


def compiled_first():
    """Returns (header, suffix) for each header that some source includes before all else. The build
    compiled these headers alone."""
    found = set()
    for entry in compile_database():
        name = os.path.relpath(entry["file"], TOP)
        first = FIRST_INCLUDE.search(read(name)) if (TOP / name).is_file() else None
        if first and first.group(1):
            found.add((first.group(1), pathlib.Path(name).suffix))
    return found


def check_headers(files, chosen, _):
    proven = compiled_first()
    compilers = {".c": ["gcc", "-std=gnu11", "-x", "c"], ".cc": ["g++", "-std=c++23", "-x", "c++"]}
    work = []
    for header, languages in header_languages(files).items():
        if header in chosen and not header.startswith("kmod/"):
            if not NOT_SELF_CONTAINED.search(read(header)):
                work += [(header, language) for language in sorted(languages)
                         if (header, language) not in proven]

    def compile_alone(item):
        header, language = item
        command = [*compilers[language], "-fsyntax-only", "-Wall", "-Wextra", "-I.",
                   "-Iust-injector/include", "-"]
        return complaint(command, f"{header}: does not compile alone as {language}",
                         f'#include "{header}"\n')

    return in_parallel(compile_alone, work)


def check_tidy(_, chosen, is_short):
    entries = compile_database()
    for flag in GCC_ONLY:
        entries = [entry | {"command": entry["command"].replace(f" {flag} ", " ")} for entry in entries]
    TIDY.mkdir(parents=True, exist_ok=True)
    (TIDY / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    compiled = collections.defaultdict(list)
    for entry in compile_database():
        compiled[os.path.relpath(entry["file"], TOP)].append(entry)
    sources = [name for name in chosen if name in compiled and not is_test(name)]
    # The flags in the database are gcc's; clang need not know all of them.
    base = ["clang-tidy-19", "--quiet", "-p", str(TIDY),
            "--extra-arg=-Wno-unknown-warning-option",
            # gcc's own flags stand in its compile commands (ust-injector/preload)
            "--extra-arg=-Wno-ignored-optimization-argument"]
    if is_short:
        base.append(f"--checks={SHORT_CHECKS}")
    clean = tidy_cache.Clean(base)

    def tidy(name):
        known = clean.of(compiled[name])
        said = "" if known and known.exists() else complaint([*base, name], f"{name}:")
        if known and not said:
            clean.remember(known)
        return said

    said = in_parallel(tidy, sources)
    clean.forget_unused()
    return said


CHECKS = {
    "licences": check_licences,
    "sizes": check_sizes,
    "words": check_words,
    "memory orders": check_memory_orders,
    "include layers": check_layers,
    "format": check_format,
    "headers": check_headers,
    "clang-tidy": check_tidy,
}


def main(argv):
    parser = argparse.ArgumentParser(prog="./dev lint")
    parser.add_argument("--quick", action="store_true", help="changed files only")
    parser.add_argument("--short", action="store_true", help="fewer of clang-tidy's checks")
    parser.add_argument("paths", nargs="*", help="only files below these folders")
    args = parser.parse_args(argv)
    files = all_files()
    chosen = files
    if args.quick:
        changed = changed_files()
        chosen = [name for name in files if name in changed]
    if args.paths:
        chosen = [name for name in chosen if name.startswith(tuple(args.paths))]

    failed = 0
    for title, check in CHECKS.items():
        start = time.monotonic()
        said = check(files, chosen, args.short)
        for text in said:
            print(text.rstrip())
        failed += bool(said)
        result = f"{len(said)} complaints" if said else "ok"
        print(f"lint: {title}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"lint: {len(CHECKS) - failed} checks passed, {failed} failed, {len(chosen)} files")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
