#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the header of a provider with 200 tracepoints, for bench/ust/process.c."""

EVENT = "TRACEPOINT_EVENT(many, e{0:03}, TP_ARGS(int, a), TP_FIELDS(ctf_integer(int, a, a)))"

print("""#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER many
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "many.h"
#if !defined(MANY_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define MANY_H_
#include <lttng/tracepoint.h>
#include <stdint.h>""")
for i in range(200):
    print(EVENT.format(i))
print("#endif\n#include <lttng/tracepoint-event.h>")
