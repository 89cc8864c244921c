// SPDX-License-Identifier: Apache-2.0
// The tracepoints that the bench measures, in LTTng-UST's macros. They are compiled once against
// LTTng's headers and once against weft's.
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER bench

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "provider.h"

#if !defined(WEFT_BENCH_UST_PROVIDER_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_BENCH_UST_PROVIDER_H_

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

TRACEPOINT_EVENT(bench, four, TP_ARGS(int32_t, a, uint64_t, b, double, c, const void*, d),
                 TP_FIELDS(ctf_integer(int32_t, a, a) ctf_integer(uint64_t, b, b)
                               ctf_float(double, c, c) ctf_integer_hex(uintptr_t, d, (uintptr_t)d)))

TRACEPOINT_EVENT(bench, text, TP_ARGS(const char*, s), TP_FIELDS(ctf_string(s, s)))

TRACEPOINT_EVENT(bench, numbers, TP_ARGS(const uint32_t*, v, size_t, n),
                 TP_FIELDS(ctf_sequence(uint32_t, v, v, size_t, n)))

TRACEPOINT_EVENT(bench, off, TP_ARGS(int32_t, a), TP_FIELDS(ctf_integer(int32_t, a, a)))

#endif

#include <lttng/tracepoint-event.h>
