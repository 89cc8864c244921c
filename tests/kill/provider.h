// SPDX-License-Identifier: Apache-2.0
// Self-checking events of the kill tests.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stress

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/kill/provider.h"

#if !defined(WEFT_TESTS_KILL_PROVIDER_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_TESTS_KILL_PROVIDER_H_

#include <stddef.h>
#include <stdint.h>
#include <weft/tracepoint.h>

// lane: one line of execution (a thread, a signal handler on it, a child); sequence: from 0 in the
// lane; check: stress_check(lane, sequence).
LTTNG_UST_TRACEPOINT_EVENT(
    stress, fixed, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, sequence)
                                lttng_ust_field_integer(uint64_t, check, check)))

// These values in one word (the check's lower half), in two, and with repeated checks in four and
// five.
LTTNG_UST_TRACEPOINT_EVENT(
    stress, one, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint16_t, lane, (uint16_t)lane)
                            lttng_ust_field_integer(uint16_t, check, (uint16_t)check)
                                lttng_ust_field_integer(uint32_t, sequence, (uint32_t)sequence)))
LTTNG_UST_TRACEPOINT_EVENT(
    stress, two, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, lane, (uint32_t)lane)
                            lttng_ust_field_integer(uint32_t, sequence, (uint32_t)sequence)
                                lttng_ust_field_integer(uint64_t, check, check)))
LTTNG_UST_TRACEPOINT_EVENT(
    stress, four, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, sequence)
                                lttng_ust_field_integer(uint64_t, check, check)
                                    lttng_ust_field_integer(uint64_t, check2, check)))
LTTNG_UST_TRACEPOINT_EVENT(
    stress, five, LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, sequence)
                                lttng_ust_field_integer(uint64_t, check, check)
                                    lttng_ust_field_integer(uint64_t, check2, check)
                                        lttng_ust_field_integer(uint64_t, check3, check)))

// These values and a tail of `size` bytes, each (uint8_t)check.
LTTNG_UST_TRACEPOINT_EVENT(
    stress, tail,
    LTTNG_UST_TP_ARGS(uint64_t, lane, uint64_t, sequence, uint64_t, check, const uint8_t*, bytes,
                      size_t, size),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, lane, lane)
                            lttng_ust_field_integer(uint64_t, sequence, sequence)
                                lttng_ust_field_integer(uint64_t, check, check)
                                    lttng_ust_field_sequence(uint8_t, bytes, bytes, size_t, size)))

#endif

#include <weft/tracepoint-event.h>
