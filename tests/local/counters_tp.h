/* SPDX-License-Identifier: Apache-2.0 */
/* One event with the values that a thread read itself. The tracepoint macros read this file several
 * times. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER counters

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "tests/local/counters_tp.h"

#if !defined(WEFT_TESTS_LOCAL_COUNTERS_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_LOCAL_COUNTERS_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(counters, read,
  TP_ARGS(int, thread, uint64_t, clock, uint64_t, faults, uint64_t, switches),
  TP_FIELDS(
    ctf_integer(int, thread, thread)
    ctf_integer(uint64_t, clock, clock)
    ctf_integer(uint64_t, faults, faults)
    ctf_integer(uint64_t, switches, switches)
  )
)
/* clang-format on */

#endif

#include <weft/tracepoint-event.h>
