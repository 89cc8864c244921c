/* SPDX-License-Identifier: Apache-2.0 */
/* The emitter's tracepoints. Read several times by the tracepoint macros. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER emitter

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/local/emitter_tp.h"

#if !defined(WEFT_TESTS_LOCAL_EMITTER_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_LOCAL_EMITTER_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(emitter, tick,
  TP_ARGS(int, process, int, thread, uint64_t, number),
  TP_FIELDS(
    ctf_integer(int, process, process)
    ctf_integer(int, thread, thread)
    ctf_integer(uint64_t, number, number)
  )
)
TRACEPOINT_LOGLEVEL(emitter, tick, TRACE_INFO)

TRACEPOINT_EVENT(emitter, text,
  TP_ARGS(const char *, words, double, value),
  TP_FIELDS(
    ctf_string(words, words)
    ctf_float(double, value, value)
  )
)
TRACEPOINT_LOGLEVEL(emitter, text, TRACE_DEBUG)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
