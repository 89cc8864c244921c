/* SPDX-License-Identifier: Apache-2.0 */
/* Tracepoints of large.c. The tracepoint macros read this file several times. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER large

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/local/large_tp.h"

#if !defined(WEFT_TESTS_LOCAL_LARGE_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_LOCAL_LARGE_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(large, text,
  TP_ARGS(int, number, const char *, words),
  TP_FIELDS(
    ctf_integer(int, number, number)
    ctf_string(words, words)
  )
)

TRACEPOINT_EVENT(large, bytes,
  TP_ARGS(int, number, const uint8_t *, data, uint32_t, size),
  TP_FIELDS(
    ctf_integer(int, number, number)
    ctf_sequence(uint8_t, data, data, uint32_t, size)
  )
)

TRACEPOINT_EVENT(large, small,
  TP_ARGS(int, number),
  TP_FIELDS(ctf_integer(int, number, number))
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
