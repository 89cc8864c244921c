// SPDX-License-Identifier: Apache-2.0
// The tracepoints of the wrapper (wrapper.c), in LTTng-UST's macros.
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER bench

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "wrapper.h"

#if !defined(WEFT_BENCH_FUNCTIONS_WRAPPER_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_BENCH_FUNCTIONS_WRAPPER_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

TRACEPOINT_EVENT(bench, function_entry,
                 TP_ARGS(int32_t, id, uint64_t, bytes, double, ratio, const void*, data),
                 TP_FIELDS(ctf_integer(int32_t, id, id) ctf_integer(uint64_t, bytes, bytes)
                               ctf_float(double, ratio, ratio)
                                   ctf_integer_hex(uintptr_t, data, (uintptr_t)data)))

TRACEPOINT_EVENT(bench, function_exit, TP_ARGS(int64_t, ret),
                 TP_FIELDS(ctf_integer(int64_t, ret, ret)))

#endif

#include <lttng/tracepoint-event.h>
