/* SPDX-License-Identifier: Apache-2.0 */
/* clock_program's tracepoint. Read several times by the tracepoint macros. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER clock_program

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/vm/clock_program_tp.h"

#if !defined(WEFT_TESTS_VM_CLOCK_PROGRAM_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_VM_CLOCK_PROGRAM_TP_H_

#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(clock_program, mark,
  TP_ARGS(int, number),
  TP_FIELDS(
    ctf_integer(int, number, number)
  )
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
