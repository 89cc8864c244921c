# SPDX-License-Identifier: Apache-2.0
"""Checks which folder may include which, and which files include each other in a circle.

MAY_INCLUDE is the one table of layers: a folder includes itself, lib/abi, and the folders named for
it. A part (everything outside lib/) never includes another part: parts meet in lib/.
FLOORS names the floors of a folder that has many files: a file includes its own floor and those below.
Tests are free to include what they test, except that they are no part of a circle either.
"""

import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCE = (".c", ".cc", ".h")
TEST = re.compile(r"_(test|fuzz|bench)\.\w+$|(^|/)(tests|bench|testing)/")
ROOTS = ("", "ust-injector/include/")  # where the compiler looks for a quoted name, after its own folder

MAY_INCLUDE = {
    "lib/abi": (),
    "lib/base": (),
    "lib/elf": ("lib/base", "lib/event"),
    "lib/fields": ("lib/base",),
    "lib/event": ("lib/base",),
    "lib/ring": ("lib/base",),
    "lib/ctf": ("lib/base", "lib/event"),
    "lib/store": ("lib/base", "lib/ctf"),
    "lib/live": ("lib/base", "lib/ctf"),
    "lib/api": ("lib/base", "lib/event"),
    "lib/control": ("lib/base",),
    "lib/ipc": ("lib/base", "lib/fields"),
    "lib/stream": ("lib/base", "lib/fields"),
    "lib/kube": ("lib/base",),
    "lib/http": ("lib/base",),
    "lib/metrics": (),
    "lib/sandbox": ("lib/base",),
    "lib/tls": ("lib/base",),
    "ust-injector/include": (),
    "ust-injector/preload": ("lib/event", "lib/ring"),
    "ust-injector/webhook": ("lib/api", "lib/base", "lib/http", "lib/kube", "lib/metrics"),
    "node-agent/keeper": ("lib/base", "lib/ipc"),
    "node-agent/hooks": ("lib/api", "lib/base", "lib/elf", "lib/event", "lib/ipc", "lib/sandbox"),
    "node-agent/attach": ("lib/base", "lib/elf", "node-agent/hooks"),
    "node-agent/kernel": ("lib/api", "lib/base", "lib/elf", "lib/event"),
    "node-agent/consumer": ("lib/base", "lib/ctf", "lib/event", "lib/fields", "lib/ipc", "lib/ring", "lib/sandbox",
                            "lib/store", "lib/stream", "lib/tls"),
    "node-agent/agent/base": ("lib/base", "lib/ipc"),
    "node-agent/agent/session": ("lib/api", "lib/base", "lib/control", "lib/event", "lib/fields", "lib/ipc",
                                 "node-agent/agent/base", "node-agent/hooks", "node-agent/kernel"),
    "node-agent/agent/kernel": ("lib/base", "lib/ipc", "node-agent/agent/base", "node-agent/agent/session",
                                "node-agent/kernel"),
    "node-agent/agent/discovery": ("lib/base", "lib/control", "lib/ipc", "lib/ring", "node-agent/agent/base",
                                   "node-agent/agent/session"),
    "node-agent/agent/consumers": ("lib/base", "lib/ipc", "node-agent/agent/base", "node-agent/agent/discovery",
                                   "node-agent/agent/kernel", "node-agent/agent/session"),
    "node-agent/agent/core": ("lib/base", "lib/control", "lib/ipc", "node-agent/agent/base",
                              "node-agent/agent/consumers", "node-agent/agent/discovery", "node-agent/agent/kernel",
                              "node-agent/agent/session"),
    "node-agent/agent/local": ("lib/base", "lib/ipc", "node-agent/agent/base", "node-agent/agent/consumers",
                               "node-agent/agent/core", "node-agent/agent/discovery", "node-agent/agent/kernel",
                               "node-agent/agent/session", "node-agent/attach", "node-agent/hooks",
                               "node-agent/kernel"),
    "node-agent/agent/cluster": ("lib/api", "lib/base", "lib/elf", "lib/event", "lib/fields", "lib/http", "lib/ipc",
                                 "lib/kube", "lib/metrics", "node-agent/agent/base", "node-agent/agent/consumers",
                                 "node-agent/agent/core", "node-agent/agent/discovery", "node-agent/agent/session",
                                 "node-agent/attach", "node-agent/hooks", "node-agent/kernel"),
    "relay": ("lib/base", "lib/kube", "lib/metrics", "lib/store", "relay/api", "relay/ingest",
              "relay/rates", "relay/status", "relay/trust"),
    "relay/trust": ("lib/api", "lib/base", "lib/kube", "lib/stream", "lib/tls"),
    "relay/api": ("lib/base", "lib/ctf", "lib/http", "lib/kube", "lib/metrics", "lib/store", "relay/rates",
                  "relay/trust"),
    "relay/ingest": ("lib/api", "lib/base", "lib/ctf", "lib/http", "lib/metrics", "lib/store", "lib/stream",
                     "lib/tls", "relay/rates", "relay/trust"),
    "relay/rates": (),
    "relay/status": ("lib/base", "lib/ctf", "lib/kube", "lib/metrics", "lib/store", "relay/ingest"),
    "controller": ("lib/api", "lib/base", "lib/http", "lib/kube", "lib/metrics", "lib/store"),
    "cli/kubectl": ("cli", "lib/api", "lib/base", "lib/ctf", "lib/kube", "lib/live", "lib/store"),
    "cli": ("lib/api", "lib/base", "lib/ctf", "lib/elf", "lib/event", "lib/fields", "lib/ipc"),
    "kmod": ("lib/event",),
    "deploy/examples": (),
    "deploy/install_test": ("lib/base",),
}

# Folder -> its floors, the lowest one first: nouns (file names without suffix).
FLOORS = {
    "kmod": (
        ("access", "clock", "compat", "control", "limits", "perf"),
        ("callstack", "context", "context_value", "fetch", "guard", "id_set", "ring", "scope", "selftest", "track", "uprobe_calls"),
        ("session", "channel"),
        ("event_source", "event", "event_input", "event_run"),
        ("kprobe", "syscall", "tracepoint", "uprobe", "statedump", "statedump_machine", "statedump_task"),
        ("source_table",),
        ("session_file", "channel_file", "event_file"),
        ("main",),
    ),
    "ust-injector/preload": (
        ("bpf", "clock", "cycles", "environment", "helper_task", "keep", "lock", "memory", "peek", "perf_page", "pin",
         "process", "seccomp", "sys", "text", "thread", "time_namespace"),
        ("control_area", "own_control", "rules"),
        ("app_context", "contexts", "perf"),
        ("atomic_write", "channel", "channel_table", "children", "doorbell", "loaded_objects", "own_rseq", "ring_memory",
         "ring_set"),
        ("decide",),
        ("emit",),
        ("app_probes", "hook_calls", "hook_depth", "hook_fast", "hook_slow", "hook_values", "hooks", "hooks_asm", "hooks_go",
         "registry", "statedump", "statedump_events"),
        ("lifecycle",),
        ("interpose", "interpose_asm", "library", "program", "replaced", "seccomp_install"),
    ),
}

# A circle that is left, by one of its files -> how many files it has at most, and why it is left.
KNOWN_CIRCLES = {
    "lib/api/parse": (6, "the schema of a Trace names the functions that parse and write its fields"),
    "lib/api/session": (2, "the schema of a TraceSession stands beside the type that it describes"),
    "lib/ctf/trace_class": (5, "a TSDL or CTF 2 parser makes a TraceClass, which chooses its parser"),
    "controller/reconcile/plan": (2, "a plan contains a status, which is computed from the plan's situation"),
    "node-agent/kernel/driver": (2, "a driver that is not there is built, and then loaded as a driver"),
    "node-agent/kernel/resolve": (2, "an event is built of resolved names and resolved by building it"),
}


def folder_of(name):
    """Returns the row of MAY_INCLUDE that a file belongs to, or None."""
    rows = [row for row in MAY_INCLUDE if name.startswith(row + "/")]
    return max(rows, key=len, default=None)


def includes_of(name, text, known):
    """Returns the files of `known` that `name`, whose text is given, includes."""
    found = []
    for wanted in INCLUDE.findall(text):
        places = [os.path.normpath(os.path.join(os.path.dirname(name), wanted))]
        places += [os.path.normpath(root + wanted) for root in ROOTS]
        found += [place for place in places if place in known][:1]
    return found


def layer_complaints(graph):
    """Returns one line for each include that MAY_INCLUDE does not allow. `graph`: file -> files it
    includes."""
    said = []
    for name, included in graph.items():
        row = folder_of(name)
        for other in included:
            other_row = folder_of(other)
            if row is None or other_row in (None, row, "lib/abi", *MAY_INCLUDE[row]):
                continue
            said.append(f"{name}: includes {other}, but {row} may not include {other_row} "
                        "(scripts/include_layers.py: MAY_INCLUDE)")
    return said


def floor_complaints(graph):
    """Returns one line for each include that goes up in FLOORS, for each file that is on no floor,
    and for each floor without its file."""
    said = []
    for folder, floors in FLOORS.items():
        height = {f"{folder}/{noun}": number for number, floor in enumerate(floors) for noun in floor}
        inside = {name: os.path.splitext(name)[0] for name in graph if os.path.dirname(name) == folder}
        said += [f"{name}: stands on no floor of {folder} (scripts/include_layers.py: FLOORS)"
                 for name, noun in inside.items() if noun not in height]
        said += [f"{noun}: is on a floor of {folder}, but there is no such file (scripts/include_layers.py: FLOORS)"
                 for noun in height if noun not in inside.values()]
        for name, noun in inside.items():
            said += [f"{name}: includes {other}, which stands on a higher floor (scripts/include_layers.py: FLOORS)"
                     for other in graph[name]
                     if height.get(os.path.splitext(other)[0], 0) > height.get(noun, 0)]
    return said


def circles(graph):
    """Sets of nouns (file names without suffix) that include each other, directly or through others."""
    nouns = {}
    for name, included in graph.items():
        noun = os.path.splitext(name)[0]
        nouns.setdefault(noun, set()).update(os.path.splitext(other)[0] for other in included)
        nouns[noun].discard(noun)
    reached = {}
    for start in nouns:
        seen, todo = set(), [start]
        while todo:
            for other in nouns.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        reached[start] = seen
    found = {frozenset(other for other in reached[noun] if noun in reached.get(other, ()))
             for noun in nouns if noun in reached[noun]}
    return sorted(found, key=min)


def circle_complaints(graph):
    """Returns one line for each circle of includes that is not known, or that grew."""
    said = []
    found = circles(graph)
    for circle in found:
        limit = max((count for noun, (count, _) in KNOWN_CIRCLES.items() if noun in circle), default=0)
        if len(circle) > limit:
            said.append(f"{len(circle)} files include each other in a circle (known: {limit}): "
                        + " ".join(sorted(circle)))
    for noun in KNOWN_CIRCLES:
        if not any(noun in circle for circle in found):
            said.append(f"{noun}: is in no circle of includes any more: take it out of KNOWN_CIRCLES")
    return said


def check(files, read):
    """Returns complaints about the includes of all `files`; read(name) returns a file's text."""
    sources = [name for name in files if name.endswith(SOURCE) and not TEST.search(name)]
    known = set(sources)
    graph = {name: includes_of(name, read(name), known) for name in sources}
    return layer_complaints(graph) + floor_complaints(graph) + circle_complaints(graph)
