/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shop's tracepoints: what a header of a tracepoint provider looks like. It is read several
 * times, so it holds nothing but #includes and tracepoint macros.
 */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shop

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "deploy/examples/shop/shop_tp.h"

#if !defined(WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_TP_H_

#include <stddef.h>
#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_ENUM(shop, payment_method,
  TP_ENUM_VALUES(
    ctf_enum_value("cash", 0)
    ctf_enum_value("card", 1)
    ctf_enum_range("voucher", 2, 9)
  )
)

TRACEPOINT_EVENT(shop, customer_arrived,
  TP_ARGS(uint32_t, customer, const char *, name),
  TP_FIELDS(
    ctf_integer(uint32_t, customer, customer)
    ctf_string(name, name)
  )
)
TRACEPOINT_LOGLEVEL(shop, customer_arrived, TRACE_INFO)

TRACEPOINT_EVENT(shop, order_placed,
  TP_ARGS(uint64_t, order, uint32_t, customer,
          const uint32_t *, items, size_t, item_count, double, total),
  TP_FIELDS(
    ctf_integer(uint64_t, order, order)
    ctf_integer(uint32_t, customer, customer)
    ctf_sequence(uint32_t, items, items, size_t, item_count)
    ctf_float(double, total, total)
  )
)
TRACEPOINT_LOGLEVEL(shop, order_placed, TRACE_INFO)

TRACEPOINT_EVENT(shop, order_packed,
  TP_ARGS(uint64_t, order, uint32_t, clerk, float, weight),
  TP_FIELDS(
    ctf_integer(uint64_t, order, order)
    ctf_integer(uint32_t, clerk, clerk)
    ctf_float(float, weight, weight)
  )
)
TRACEPOINT_LOGLEVEL(shop, order_packed, TRACE_DEBUG)

/* Two events with the same fields. */
TRACEPOINT_EVENT_CLASS(shop, payment,
  TP_ARGS(uint64_t, order, int, method, double, amount, const char *, reference),
  TP_FIELDS(
    ctf_integer(uint64_t, order, order)
    ctf_enum(shop, payment_method, int, method, method)
    ctf_float(double, amount, amount)
    ctf_array_text(char, reference, reference, 8)
  )
)
TRACEPOINT_EVENT_INSTANCE(shop, payment, payment_received,
  TP_ARGS(uint64_t, order, int, method, double, amount, const char *, reference))
TRACEPOINT_LOGLEVEL(shop, payment_received, TRACE_INFO)
TRACEPOINT_EVENT_INSTANCE(shop, payment, payment_refused,
  TP_ARGS(uint64_t, order, int, method, double, amount, const char *, reference))
TRACEPOINT_LOGLEVEL(shop, payment_refused, TRACE_WARNING)

TRACEPOINT_EVENT(shop, closed, TP_ARGS(), TP_FIELDS())
TRACEPOINT_LOGLEVEL(shop, closed, TRACE_NOTICE)
/* clang-format on */

#endif  // WEFT_DEPLOY_EXAMPLES_SHOP_SHOP_TP_H_

#include <weft/tracepoint-event.h>
