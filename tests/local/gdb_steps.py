# SPDX-License-Identifier: Apache-2.0
"""Runs in gdb, which has the program local_attached with the word `deep`, and the program's folder in $folder. Steps
through one call of traced_call, instruction by instruction, and looks at the stack at each place. Prints what is wrong,
and the functions that were seen."""

import pathlib

import gdb

AROUND = ["traced_deep", "traced_deep", "traced_deep", "call_range", "call_traced", "main"]
PROGRAM = {"traced_call", *AROUND}
# The first calls of a program decide what is recorded, and look up functions of other libraries.
FIRST = 3


def names_of_stack():
    names, frame = [], gdb.newest_frame()
    while frame is not None:
        names.append(str(frame.name()))
        frame = frame.older()
    return names


def main():
    gdb.execute("tbreak *traced_call")
    gdb.execute(f"ignore $bpnum {FIRST}")
    pathlib.Path(gdb.convenience_variable("folder").string(), "go").touch()
    gdb.execute("continue")
    places, names = set(), names_of_stack()
    seen = set(names)
    while names[0] != "traced_deep":
        gdb.execute("stepi", to_string=True)
        place = int(gdb.parse_and_eval("(long)$pc"))
        if place in places:  # a loop
            continue
        places.add(place)
        names = names_of_stack()
        seen |= set(names)
        if [name for name in names if name in PROGRAM] not in (["traced_call", *AROUND], AROUND):
            print(f"wrong: {place:#x}: {names}")
    print("seen:", *seen)


main()
