#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library.py libweft.so...: what each file asks of a process, read with readelf.

It may need no library, no symbol version, no symbol that must be there, no thread-local storage; it is
never unloaded; it is small; it exports what is documented in lib/abi/tracepoint.h and
ust-injector/preload/interpose.c, and nothing else. Before the abort handler of each section stands the signature
that threads are registered with on its architecture (glibc's, too): the kernel kills them where it does not.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys

EXPORTED = {
    "weft_object_register", "weft_object_unregister", "weft_tracepoint_enabled",
    "weft_probe_attach", "weft_probe_detach", "weft_tracepoint_iterate",
    "weft_app_context_register", "weft_app_context_unregister",
    "vfork", "clone", "prctl", "setns", "syscall", "unshare", "__asan_default_options",
}
MAX_BYTES = 700 * 1024
# By ELF's e_machine: x86-64, arm64.
SIGNATURES = {62: 0x53053053, 183: 0xd428bc00}
EXPORTED_OF = {62: {"weft_hooks"}}  # what agents look for (lib/abi/hooks.h)
RSEQ_CS = struct.Struct("<IIQQQ")  # version, flags, start, length of the section, abort handler


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True,
                          text=True).stdout


def machine_of(path):
    return struct.unpack_from("<H", pathlib.Path(path).read_bytes(), 18)[0]


def problems(path):
    dynamic = readelf("-d", path)
    if "(NEEDED)" in dynamic:
        yield "it has DT_NEEDED"
    if "(VERNEED)" in dynamic:
        yield "it has DT_VERNEED"
    if "(TEXTREL)" in dynamic:
        yield "it has text relocations"
    if not re.search(r"\(FLAGS_1\).*NODELETE", dynamic):
        yield "it is not marked NODELETE"
    headers = readelf("-l", path)
    if re.search(r"^\s*TLS\b", headers, re.M):
        yield "it has a TLS segment"
    if re.search(r"^\s*INTERP\b", headers, re.M):
        yield "it names a dynamic linker"
    stack = re.search(r"^\s*GNU_STACK.*", headers, re.M)
    if stack is None or "RWE" in stack.group():
        yield "it wants an executable stack"
    exported = set()
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[3] == "SECTION":
            continue
        bind, section, name = fields[4], fields[6], fields[7]
        if section == "UND":
            if bind != "WEAK" and name:
                yield f"it cannot be loaded without {name}"
        else:
            exported.add(name)
    expected = EXPORTED | EXPORTED_OF.get(machine_of(path), set())
    for name in sorted(exported - expected):
        yield f"it exports {name}"
    for name in sorted(expected - exported):
        yield f"it does not export {name}"
    if os.path.getsize(path) >= MAX_BYTES:
        yield f"it has {os.path.getsize(path)} bytes"


def section_problems(path):
    """Returns what is wrong with the writer's sections, by their addends, since the addresses are
    relocated at run time."""
    content = pathlib.Path(path).read_bytes()
    signature = SIGNATURES[machine_of(path)]
    sections = {}
    for line in readelf("-S", path).splitlines():
        match = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+)", line)
        if match:
            sections[match[1]] = tuple(int(number, 16) for number in match.groups()[1:])
    address, _, size = sections["weft_rseq_cs"]
    text, text_offset, _ = sections[".text"]
    addends = {int(m[1], 16): int(m[2], 16)
               for m in re.finditer(r"^([0-9a-f]{16})\s.*_RELATIV\S*\s+([0-9a-f]+)$", readelf("-r", path), re.M)}
    if size == 0:
        yield "it has no sections"
    for at in range(address, address + size, RSEQ_CS.size):
        abort = addends[at + 24]
        before = struct.unpack_from("<I", content, abort - text + text_offset - 4)[0]
        if before != signature:
            yield f"before the abort handler at {abort:#x} stands {before:#x}"


def main():
    found = 0
    for path in sys.argv[1:]:
        for problem in (*problems(path), *section_problems(path)):
            print(f"{path}: {problem}")
            found += 1
        print(f"{path}: {os.path.getsize(path)} bytes")
    print(f"{found} problems")
    return 1 if found or not sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
