/* SPDX-License-Identifier: Apache-2.0 */
/* ROS 2's tracetools: the provider is a macro everywhere, addresses are const void* shown in
 * hex, one field is a sequence with its length as another argument, and every event has C
 * linkage in C++. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_ros

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/ros_tp.h"

#if !defined(SHAPES_ROS_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_ROS_TP_H_

#include <lttng/tracepoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_ROS_VERSION "4.1.1"

TRACEPOINT_EVENT(TRACEPOINT_PROVIDER, context_init, TP_ARGS(const void*, context_handle_arg),
                 TP_FIELDS(ctf_integer_hex(const void*, context_handle, context_handle_arg)
                               ctf_string(version, SHAPE_ROS_VERSION)))

TRACEPOINT_EVENT(
    TRACEPOINT_PROVIDER, publisher_init,
    TP_ARGS(const void*, handle_arg, const char*, topic_arg, const size_t, depth_arg,
            const uint8_t*, gid_arg, bool, is_local_arg, int64_t, period_arg),
    TP_FIELDS(ctf_integer_hex(const void*, handle, handle_arg) ctf_string(topic, topic_arg)
                  ctf_integer(const size_t, depth, depth_arg) ctf_array(uint8_t, gid, gid_arg, 4)
                      ctf_sequence(uint8_t, gids, gid_arg, const size_t, depth_arg)
                          ctf_integer(int, is_local, (is_local_arg ? 1 : 0))
                              ctf_integer(int64_t, period, period_arg)))

TRACEPOINT_EVENT(TRACEPOINT_PROVIDER, shutdown, TP_ARGS(), TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
