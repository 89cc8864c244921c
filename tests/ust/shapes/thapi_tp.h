/* SPDX-License-Identifier: Apache-2.0 */
/* Interception layers for OpenCL, Level Zero and CUDA: handles as integers of pointer size,
 * function pointers, enumerators beyond int, sequences of addresses, 64-bit flags, arrays inside
 * structs. ctf_integer() and ctf_sequence() show pointers in base 10, as LTTng does. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER shape_api

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "shapes/thapi_tp.h"

#if !defined(SHAPES_THAPI_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define SHAPES_THAPI_TP_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

#ifndef SHAPES_THAPI_TYPES
#define SHAPES_THAPI_TYPES
typedef struct shape_platform* shape_platform_id;
typedef void (*shape_callback)(const char*, void*);
typedef uint64_t shape_device_type;
typedef struct shape_uuid {
  uint8_t id[16];
} shape_uuid;
#endif

TRACEPOINT_ENUM(shape_api, result,
                TP_ENUM_VALUES(ctf_enum_value("SUCCESS", 0)
                                   ctf_enum_value("DEVICE_LOST", 0x70000001)
                                       ctf_enum_value("UNSUPPORTED", 0x80000005)
                                           ctf_enum_value("FORCE_UINT32", 0xffffffff)))
TRACEPOINT_ENUM(shape_api, flags64,
                TP_ENUM_VALUES(ctf_enum_value("LOWEST", INT64_MIN) ctf_enum_range("BELOW", -5, -2)
                                   ctf_enum_value("NONE", 0) ctf_enum_range("ONE_BIT", 0x100000000,
                                                                            0x1ffffffff)
                                       ctf_enum_auto("NEXT") ctf_enum_value("HIGHEST", INT64_MAX)))
TRACEPOINT_ENUM(shape_api, small,
                TP_ENUM_VALUES(ctf_enum_value("MINUS", -128) ctf_enum_auto("AFTER")
                                   ctf_enum_value("PLUS\t127", 127)))

TRACEPOINT_EVENT(
    shape_api, get_platforms_start,
    TP_ARGS(uint32_t, num_entries, shape_platform_id*, platforms, shape_callback, notify,
            shape_device_type, type, const shape_uuid*, uuid, const void*, context),
    TP_FIELDS(ctf_integer(uint32_t, num_entries, num_entries) ctf_integer_hex(uintptr_t, platforms,
                                                                              (uintptr_t)platforms)
                  ctf_integer_hex(uintptr_t, notify, (uintptr_t)notify)
                      ctf_integer_hex(shape_device_type, type, type)
                          ctf_sequence_hex(uintptr_t, platforms_vals, (uintptr_t*)platforms, size_t,
                                           num_entries)
                              ctf_sequence(shape_platform_id, platforms_decimal, platforms, size_t,
                                           num_entries) ctf_array_hex(uint8_t, uuid, uuid->id, 16)
                                  ctf_integer(const void*, context, context)
                                      ctf_integer(shape_platform_id, first, platforms[0])))
TRACEPOINT_EVENT(shape_api, get_platforms_stop,
                 TP_ARGS(uint32_t, errcode, int64_t, flags, signed char, level),
                 TP_FIELDS(ctf_enum(shape_api, result, uint32_t, errcode_result, errcode)
                               ctf_enum(shape_api, flags64, int64_t, flags_result, flags)
                                   ctf_enum(shape_api, small, signed char, level_result, level)))

#endif

#include <lttng/tracepoint-event.h>
