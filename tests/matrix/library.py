#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""library.py libweft.so: what the file asks of a process, read with readelf.

It may need no library, no symbol version, no symbol that must be there, no thread-local storage; it is
never unloaded; it is small; it exports what is documented in lib/abi/tracepoint.h and
ust-injector/preload/interpose.c, and nothing else.
"""

import os
import re
import subprocess
import sys

EXPORTED = {
    "weft_object_register", "weft_object_unregister", "weft_tracepoint_enabled",
    "weft_probe_attach", "weft_probe_detach", "weft_tracepoint_iterate",
    "weft_app_context_register", "weft_app_context_unregister",
    "vfork", "clone", "prctl", "syscall", "__asan_default_options",
}
MAX_BYTES = 700 * 1024


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True,
                          text=True).stdout


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
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        bind, section, name = fields[4], fields[6], fields[7]
        if section == "UND":
            if bind != "WEAK" and name:
                yield f"it cannot be loaded without {name}"
        else:
            exported.add(name)
    for name in sorted(exported - EXPORTED):
        yield f"it exports {name}"
    for name in sorted(EXPORTED - exported):
        yield f"it does not export {name}"
    if os.path.getsize(path) >= MAX_BYTES:
        yield f"it has {os.path.getsize(path)} bytes"


def main():
    found = list(problems(sys.argv[1]))
    for problem in found:
        print(f"{sys.argv[1]}: {problem}")
    print(f"{os.path.getsize(sys.argv[1])} bytes, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
