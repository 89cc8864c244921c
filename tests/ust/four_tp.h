/* SPDX-License-Identifier: Apache-2.0 */
/* The event that is measured: its probe's machine code is looked at by builds_test.py. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER four
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./four_tp.h"
#if !defined(WEFT_TESTS_UST_FOUR_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_FOUR_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(four, fields,
  TP_ARGS(int32_t, i, uint64_t, u, double, d, void *, p),
  TP_FIELDS(
    ctf_integer(int32_t, i, i)
    ctf_integer(uint64_t, u, u)
    ctf_float(double, d, d)
    ctf_integer_hex(void *, p, p)
  )
)
/* clang-format on */

#endif /* WEFT_TESTS_UST_FOUR_TP_H_ */
#include <weft/tracepoint-event.h>
