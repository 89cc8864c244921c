/* SPDX-License-Identifier: Apache-2.0 */
/* self.c's tracepoint. Read several times by the tracepoint macros. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER self

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/local/self_tp.h"

#if !defined(WEFT_TESTS_LOCAL_SELF_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_LOCAL_SELF_TP_H_

#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(self, here,
  TP_ARGS(int, number),
  TP_FIELDS(
    ctf_integer(int, number, number)
  )
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
