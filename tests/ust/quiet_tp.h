/* SPDX-License-Identifier: Apache-2.0 */
/* quiet.c's tracepoints. Read several times by the tracepoint macros. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER quiet

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/ust/quiet_tp.h"

#if !defined(WEFT_TESTS_UST_QUIET_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_QUIET_TP_H_

#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(quiet, fixed,
  TP_ARGS(int, number, const void*, pointer),
  TP_FIELDS(
    ctf_integer(int, number, number)
    ctf_integer_hex(unsigned long, pointer, (unsigned long)pointer)
    ctf_float(double, half, number / 2.0)
  )
)

TRACEPOINT_EVENT(quiet, variable,
  TP_ARGS(int, number, const char*, text, unsigned, length),
  TP_FIELDS(
    ctf_integer(int, number, number)
    ctf_string(text, text)
    ctf_sequence_text(char, bytes, text, unsigned, length)
  )
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
