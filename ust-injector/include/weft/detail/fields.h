/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The macros that TP_FIELDS and TP_ENUM_VALUES may contain. Every macro here becomes one tuple,
 *     (kind, when, what the kind needs ...)
 * so that the fields of an event are a sequence of tuples, which the macros below walk through:
 * once for the shape of the image, once for the description, once for each half of the encoder.
 * Nothing is redefined between the passes.
 *
 * kind  weft_integer, weft_float, weft_string, weft_array, weft_sequence, weft_enum, weft_unused,
 *       weft_fixed_blob, weft_variable_blob
 * when  weft_recorded, or weft_nowrite: for filters only
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_FIELDS_H_
#define WEFT_DETAIL_FIELDS_H_

#include "compiler.h"

/* Ends a walk: the last macro of the walk is left over, with _END it is empty. */
#define WEFT_WALK(...) WEFT_WALK_(__VA_ARGS__)
#define WEFT_WALK_(...) __VA_ARGS__##_END

#define LTTNG_UST_TP_FIELDS(...) __VA_ARGS__
#define LTTNG_UST_TP_ENUM_VALUES(...) __VA_ARGS__

/* (weft_integer, when, type, name, value, flags, base) */
#define lttng_ust_field_integer(type, name, value) \
  (weft_integer, weft_recorded, type, name, value, 0, 10)
#define lttng_ust_field_integer_hex(type, name, value) \
  (weft_integer, weft_recorded, type, name, value, 0, 16)
#define lttng_ust_field_integer_network(type, name, value) \
  (weft_integer, weft_recorded, type, name, value, WEFT_FIELD_NETWORK, 10)
#define lttng_ust_field_integer_network_hex(type, name, value) \
  (weft_integer, weft_recorded, type, name, value, WEFT_FIELD_NETWORK, 16)
#define lttng_ust_field_integer_nowrite(type, name, value) \
  (weft_integer, weft_nowrite, type, name, value, 0, 10)

/* (weft_float, when, type, name, value) */
#define lttng_ust_field_float(type, name, value) (weft_float, weft_recorded, type, name, value)
#define lttng_ust_field_float_nowrite(type, name, value) \
  (weft_float, weft_nowrite, type, name, value)

/* (weft_string, when, name, value) */
#define lttng_ust_field_string(name, value) (weft_string, weft_recorded, name, value)
#define lttng_ust_field_string_nowrite(name, value) (weft_string, weft_nowrite, name, value)

/* (weft_array, when, type, name, value, count, flags, base) */
#define lttng_ust_field_array(type, name, value, count) \
  (weft_array, weft_recorded, type, name, value, count, 0, 10)
#define lttng_ust_field_array_hex(type, name, value, count) \
  (weft_array, weft_recorded, type, name, value, count, 0, 16)
#define lttng_ust_field_array_network(type, name, value, count) \
  (weft_array, weft_recorded, type, name, value, count, WEFT_FIELD_NETWORK, 10)
#define lttng_ust_field_array_network_hex(type, name, value, count) \
  (weft_array, weft_recorded, type, name, value, count, WEFT_FIELD_NETWORK, 16)
#define lttng_ust_field_array_text(type, name, value, count) \
  (weft_array, weft_recorded, type, name, value, count, WEFT_FIELD_TEXT, 10)
#define lttng_ust_field_array_nowrite(type, name, value, count) \
  (weft_array, weft_nowrite, type, name, value, count, 0, 10)
#define lttng_ust_field_array_nowrite_hex(type, name, value, count) \
  (weft_array, weft_nowrite, type, name, value, count, 0, 16)
#define lttng_ust_field_array_network_nowrite(type, name, value, count) \
  (weft_array, weft_nowrite, type, name, value, count, WEFT_FIELD_NETWORK, 10)
#define lttng_ust_field_array_network_nowrite_hex(type, name, value, count) \
  (weft_array, weft_nowrite, type, name, value, count, WEFT_FIELD_NETWORK, 16)
#define lttng_ust_field_array_text_nowrite(type, name, value, count) \
  (weft_array, weft_nowrite, type, name, value, count, WEFT_FIELD_TEXT, 10)

/* (weft_sequence, when, type, name, value, length type, length, flags, base) */
#define lttng_ust_field_sequence(type, name, value, length_type, length) \
  (weft_sequence, weft_recorded, type, name, value, length_type, length, 0, 10)
#define lttng_ust_field_sequence_hex(type, name, value, length_type, length) \
  (weft_sequence, weft_recorded, type, name, value, length_type, length, 0, 16)
#define lttng_ust_field_sequence_network(type, name, value, length_type, length) \
  (weft_sequence, weft_recorded, type, name, value, length_type, length, WEFT_FIELD_NETWORK, 10)
#define lttng_ust_field_sequence_network_hex(type, name, value, length_type, length) \
  (weft_sequence, weft_recorded, type, name, value, length_type, length, WEFT_FIELD_NETWORK, 16)
#define lttng_ust_field_sequence_text(type, name, value, length_type, length) \
  (weft_sequence, weft_recorded, type, name, value, length_type, length, WEFT_FIELD_TEXT, 10)
#define lttng_ust_field_sequence_nowrite(type, name, value, length_type, length) \
  (weft_sequence, weft_nowrite, type, name, value, length_type, length, 0, 10)
#define lttng_ust_field_sequence_nowrite_hex(type, name, value, length_type, length) \
  (weft_sequence, weft_nowrite, type, name, value, length_type, length, 0, 16)
#define lttng_ust_field_sequence_network_nowrite(type, name, value, length_type, length) \
  (weft_sequence, weft_nowrite, type, name, value, length_type, length, WEFT_FIELD_NETWORK, 10)
#define lttng_ust_field_sequence_network_nowrite_hex(type, name, value, length_type, length) \
  (weft_sequence, weft_nowrite, type, name, value, length_type, length, WEFT_FIELD_NETWORK, 16)
#define lttng_ust_field_sequence_text_nowrite(type, name, value, length_type, length) \
  (weft_sequence, weft_nowrite, type, name, value, length_type, length, WEFT_FIELD_TEXT, 10)

/* (weft_fixed_blob, when, name, value, count, media type), LTTng-UST's from 2.16 on */
#define lttng_ust_field_fixed_length_blob(name, value, count, media_type) \
  (weft_fixed_blob, weft_recorded, name, value, count, media_type)
#define lttng_ust_field_fixed_length_blob_nowrite(name, value, count, media_type) \
  (weft_fixed_blob, weft_nowrite, name, value, count, media_type)

/* (weft_variable_blob, when, name, value, length type, length, media type) */
#define lttng_ust_field_variable_length_blob(name, value, length_type, length, media_type) \
  (weft_variable_blob, weft_recorded, name, value, length_type, length, media_type)
#define lttng_ust_field_variable_length_blob_nowrite(name, value, length_type, length, media_type) \
  (weft_variable_blob, weft_nowrite, name, value, length_type, length, media_type)

/* (weft_enum, when, provider, enum, type, name, value) */
#define lttng_ust_field_enum(provider, enumeration, type, name, value) \
  (weft_enum, weft_recorded, provider, enumeration, type, name, value)
#define lttng_ust_field_enum_nowrite(provider, enumeration, type, name, value) \
  (weft_enum, weft_nowrite, provider, enumeration, type, name, value)

/* (weft_unused, when, value): an argument that the field list does not use; never evaluated. */
#define lttng_ust_field_unused(value) (weft_unused, weft_recorded, value)
#define lttng_ust_field_unused_nowrite(value) (weft_unused, weft_nowrite, value)

/* In TP_ENUM_VALUES: (kind, label, begin, end) */
#define lttng_ust_field_enum_value(label, value) (weft_range, label, value, value)
#define lttng_ust_field_enum_range(label, begin, end) (weft_range, label, begin, end)
#define lttng_ust_field_enum_auto(label) (weft_auto, label, 0)

/*
 * The shape of an image, as one constant: 16 bits for the bytes of the recorded fixed part, 16 bits
 * for those of the nowrite fixed part, and 10 bits each for the numbers of recorded segments,
 * nowrite segments and fields.
 */
#define WEFT_SHAPE(fields) (0ull WEFT_WALK(WEFT_SHAPE_A fields))
#define WEFT_SHAPE_FIXED(shape) ((shape) & 0xffff)
#define WEFT_SHAPE_NOWRITE(shape) ((shape) >> 16 & 0xffff)
#define WEFT_SHAPE_SEGMENTS(shape) ((shape) >> 32 & 0x3ff)
#define WEFT_SHAPE_NOWRITE_SEGMENTS(shape) ((shape) >> 42 & 0x3ff)
#define WEFT_SHAPE_FIELDS(shape) ((shape) >> 52 & 0x3ff)

#define WEFT_SHAPE_A(kind, ...) WEFT_SHAPE_##kind(__VA_ARGS__) WEFT_SHAPE_B
#define WEFT_SHAPE_B(kind, ...) WEFT_SHAPE_##kind(__VA_ARGS__) WEFT_SHAPE_A
#define WEFT_SHAPE_A_END
#define WEFT_SHAPE_B_END
#define WEFT_SHAPE_weft_recorded(fixed, segments) \
  +(1ull << 52 | (unsigned long long)(segments) << 32 | (unsigned long long)(fixed))
#define WEFT_SHAPE_weft_nowrite(fixed, segments) \
  +(1ull << 52 | (unsigned long long)(segments) << 42 | (unsigned long long)(fixed) << 16)

#define WEFT_SHAPE_weft_integer(when, type, ...) WEFT_SHAPE_##when(sizeof(type), 0)
#define WEFT_SHAPE_weft_float(when, type, ...) WEFT_SHAPE_##when(sizeof(type), 0)
#define WEFT_SHAPE_weft_string(when, ...) WEFT_SHAPE_##when(4, 1)
#define WEFT_SHAPE_weft_array(when, type, name, value, count, ...)                     \
  WEFT_SHAPE_##when(WEFT_ARRAY_INLINE(type, count) ? WEFT_ARRAY_SIZE(type, count) : 0, \
                    !WEFT_ARRAY_INLINE(type, count))
#define WEFT_SHAPE_weft_sequence(when, ...) WEFT_SHAPE_##when(4, 1)
#define WEFT_SHAPE_weft_fixed_blob(when, name, value, count, media_type) \
  WEFT_SHAPE_weft_array(when, uint8_t, name, value, count, 0, 16)
#define WEFT_SHAPE_weft_variable_blob(when, ...) WEFT_SHAPE_##when(4, 1)
#define WEFT_SHAPE_weft_enum(when, provider, enumeration, type, ...) \
  WEFT_SHAPE_##when(sizeof(type), 0)
#define WEFT_SHAPE_weft_unused(when, ...)

#define WEFT_ARRAY_SIZE(type, count) (sizeof(type) * (count))
#define WEFT_ARRAY_INLINE(type, count) (WEFT_ARRAY_SIZE(type, count) <= WEFT_INLINE_ARRAY_MAX)

/* The number of mappings of an enumeration. */
#define WEFT_ENUM_COUNT(values) (0 WEFT_WALK(WEFT_ENUM_COUNT_A values))
#define WEFT_ENUM_COUNT_A(...) +1 WEFT_ENUM_COUNT_B
#define WEFT_ENUM_COUNT_B(...) +1 WEFT_ENUM_COUNT_A
#define WEFT_ENUM_COUNT_A_END
#define WEFT_ENUM_COUNT_B_END

/*
 * The statements that put the recorded or the nowrite fields into the encoder `weft_e`.
 */
#define WEFT_ENCODE_RECORDED(fields) WEFT_WALK(WEFT_RECORDED_A fields)
#define WEFT_RECORDED_A(kind, when, ...) WEFT_RECORDED_##when(kind, __VA_ARGS__) WEFT_RECORDED_B
#define WEFT_RECORDED_B(kind, when, ...) WEFT_RECORDED_##when(kind, __VA_ARGS__) WEFT_RECORDED_A
#define WEFT_RECORDED_A_END
#define WEFT_RECORDED_B_END
#define WEFT_RECORDED_weft_recorded(kind, ...) WEFT_ENCODE_##kind(__VA_ARGS__)
#define WEFT_RECORDED_weft_nowrite(kind, ...)

#define WEFT_ENCODE_NOWRITE(fields) WEFT_WALK(WEFT_NOWRITE_A fields)
#define WEFT_NOWRITE_A(kind, when, ...) WEFT_NOWRITE_##when(kind, __VA_ARGS__) WEFT_NOWRITE_B
#define WEFT_NOWRITE_B(kind, when, ...) WEFT_NOWRITE_##when(kind, __VA_ARGS__) WEFT_NOWRITE_A
#define WEFT_NOWRITE_A_END
#define WEFT_NOWRITE_B_END
#define WEFT_NOWRITE_weft_recorded(kind, ...)
#define WEFT_NOWRITE_weft_nowrite(kind, ...) WEFT_ENCODE_##kind(__VA_ARGS__)

/* The cast by uintptr_t takes pointers, too. */
#define WEFT_ENCODE_weft_integer(type, name, value, flags, base)                     \
  WEFT_ABI_ASSERT(sizeof(type) <= 8, "weft: field " #name " is wider than 64 bits"); \
  weft_encode_integer(&weft_e, (uint64_t)(uintptr_t)(type)(value), (uint32_t)sizeof(type));
#define WEFT_ENCODE_weft_enum(provider, enumeration, type, name, value) \
  WEFT_ENCODE_weft_integer(type, name, value, 0, 10)
#define WEFT_ENCODE_weft_float(type, name, value)                                  \
  WEFT_ABI_ASSERT(sizeof(type) == 4 || sizeof(type) == 8, "weft: field " #name     \
                                                          " has no IEEE 754 "      \
                                                          "type of 4 or 8 bytes"); \
  if (sizeof(type) == 4) {                                                         \
    weft_encode_float(&weft_e, (float)(type)(value));                              \
  } else {                                                                         \
    weft_encode_double(&weft_e, (double)(type)(value));                            \
  }
#define WEFT_ENCODE_weft_string(name, value) weft_encode_string(&weft_e, (const char*)(value));
#define WEFT_ENCODE_weft_array(type, name, value, count, flags, base)                      \
  weft_encode_array(&weft_e, (const void*)(value), (uint32_t)WEFT_ARRAY_SIZE(type, count), \
                    ((flags) & WEFT_FIELD_TEXT) != 0);
#define WEFT_ENCODE_weft_sequence(type, name, value, length_type, length, flags, base) \
  {                                                                                    \
    length_type weft_length = (length_type)(length); /* the type may be const */       \
    weft_encode_sequence(&weft_e, (const void*)(value), (uint64_t)weft_length,         \
                         WEFT_IS_SIGNED(length_type) ? (int64_t)weft_length : 0,       \
                         (uint32_t)sizeof(type), ((flags) & WEFT_FIELD_TEXT) != 0);    \
  }
#define WEFT_ENCODE_weft_fixed_blob(name, value, count, media_type) \
  WEFT_ENCODE_weft_array(uint8_t, name, value, count, 0, 16)
#define WEFT_ENCODE_weft_variable_blob(name, value, length_type, length, media_type) \
  WEFT_ENCODE_weft_sequence(uint8_t, name, value, length_type, length, 0, 16)
#define WEFT_ENCODE_weft_unused(value) \
  if (0) {                             \
    (void)(value);                     \
  }

#endif /* WEFT_DETAIL_FIELDS_H_ */
