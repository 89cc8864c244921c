/* SPDX-License-Identifier: Apache-2.0 */
/* LTTng's own helpers (profiling of functions, allocation): an address given by the caller as the
 * event's, arguments that no field uses, levels after events. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shape_profile

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "shapes/profile_tp.h"

#if !defined(SHAPES_PROFILE_TP_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_PROFILE_TP_H_

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    shape_profile, func_class, LTTNG_UST_TP_ARGS(void*, func_addr, void*, call_site),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(unsigned long, addr, (unsigned long)func_addr)
                            lttng_ust_field_integer_hex(unsigned long, call_site,
                                                        (unsigned long)call_site)))

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(shape_profile, func_class, shape_profile, func_entry,
                                    LTTNG_UST_TP_ARGS(void*, func_addr, void*, call_site))
LTTNG_UST_TRACEPOINT_LOGLEVEL(shape_profile, func_entry,
                              LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION)

LTTNG_UST_TRACEPOINT_EVENT(shape_profile, malloc,
                           LTTNG_UST_TP_ARGS(size_t, size, void*, ptr, void*, ip),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(size_t, size, size)
                                                   lttng_ust_field_integer_hex(void*, ptr, ptr)
                                                       lttng_ust_field_unused(ip)))

#endif

#include <lttng/tracepoint-event.h>
