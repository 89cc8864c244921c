/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that several objects have. Each has a FIELD of its own, or another type NUMBER. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER twin
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./twin_tp.h"
#if !defined(WEFT_TESTS_UST_TWIN_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_TWIN_TP_H_

#include <weft/tracepoint.h>

#ifndef NUMBER
#define NUMBER int
#endif
#ifndef FIELD
#define FIELD number
#endif

/* clang-format off */
TRACEPOINT_EVENT(twin, event,
  TP_ARGS(NUMBER, number),
  TP_FIELDS(
    ctf_integer(NUMBER, FIELD, number)
  )
)
/* clang-format on */

#endif /* WEFT_TESTS_UST_TWIN_TP_H_ */
#include <weft/tracepoint-event.h>
