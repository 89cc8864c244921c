/* SPDX-License-Identifier: Apache-2.0 */
/* An event that names its own address: TP_IP_PARAM stands in every_ip_tp.c. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER every_ip
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./every_ip_tp.h"
#if !defined(WEFT_TESTS_UST_EVERY_IP_TP_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_UST_EVERY_IP_TP_H_
#include <lttng/tracepoint.h>
/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(every_ip, given,
  LTTNG_UST_TP_ARGS(int, number, const void *, where),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int, number, number)
    lttng_ust_field_unused(where)
  )
)
/* clang-format on */
#endif /* WEFT_TESTS_UST_EVERY_IP_TP_H_ */
#include <lttng/tracepoint-event.h>
