// SPDX-License-Identifier: Apache-2.0
// Events whose probes come and go by dlopen and dlclose.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stress

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/kill/plugin_provider.h"

#if !defined(WEFT_TESTS_KILL_PLUGIN_PROVIDER_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_KILL_PLUGIN_PROVIDER_H_

#include <stdint.h>
#include <weft/tracepoint.h>

#include "tests/kill/books.h"

// Like stress:fixed. Only the probe knows whether there is a probe, so it begins the event in the
// lane's book.
LTTNG_UST_TRACEPOINT_EVENT(
    stress, provided, LTTNG_UST_TP_ARGS(uint64_t, lane, struct stress_lane*, book),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, book->begun++)
                                lttng_ust_field_integer(uint64_t, check,
                                                        stress_check(lane, book->begun - 1))))

// An event whose call sites are unloaded together with the probe.
LTTNG_UST_TRACEPOINT_EVENT(
    stress, plugin, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, sequence)
                                lttng_ust_field_integer(uint64_t, check, check)))

#endif

#include <weft/tracepoint-event.h>
