/* SPDX-License-Identifier: Apache-2.0 */
/* Ceph's providers: helper macros that stand for several fields, NULL-safe strings, a C++-only
 * half, and bytes of unsigned types; the header also has a helper function of its own. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_ceph

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/ceph_tp.h"

#if !defined(SHAPES_CEPH_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_CEPH_TP_H_

#include <lttng/tracepoint.h>
#include <stdint.h>
#include <time.h>

#ifndef SHAPES_CEPH_HELPERS
#define SHAPES_CEPH_HELPERS
#define shape_string(field, value)                  \
  ctf_string(field, (value) == NULL ? "" : (value)) \
      ctf_integer(uint8_t, field##_is_null, (value) == NULL)
#define shape_string_n(field, value, size)                               \
  ctf_sequence_text(char, field, (value) == NULL ? "" : (value), size_t, \
                    (value) == NULL ? 0 : (size))
#define shape_time(field, value)                     \
  ctf_integer(long int, field##_sec, (value).tv_sec) \
      ctf_integer(long int, field##_nsec, (value).tv_nsec)
#endif

TRACEPOINT_EVENT(shape_ceph, write_enter,
                 TP_ARGS(void*, pool, const char*, oid, const char*, buffer, size_t, len, uint64_t,
                         off, struct timespec, stamp),
                 TP_FIELDS(ctf_integer_hex(void*, pool, pool) shape_string(oid, oid)
                               shape_string_n(buffer, buffer, len) ctf_integer(uint64_t, off, off)
                                   shape_time(stamp, stamp)))

TRACEPOINT_LOGLEVEL(shape_ceph, write_enter, TRACE_INFO)

TRACEPOINT_EVENT(shape_ceph, write_exit, TP_ARGS(int, retval),
                 TP_FIELDS(ctf_integer(int, retval, retval)))

#endif

#include <lttng/tracepoint-event.h>
