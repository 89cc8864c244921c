/* SPDX-License-Identifier: Apache-2.0 */
/* A tracepoint for which no object has a provider. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER lone
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./lone_tp.h"
#if !defined(WEFT_TESTS_UST_LONE_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_LONE_TP_H_

#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(lone, alone,
  TP_ARGS(int, number),
  TP_FIELDS(
    ctf_integer(int, number, number)
  )
)
/* clang-format on */

#endif /* WEFT_TESTS_UST_LONE_TP_H_ */
#include <weft/tracepoint-event.h>
