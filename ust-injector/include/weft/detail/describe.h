/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the descriptions of events (struct weft_event_desc) as bytes into the section `weft_desc`.
 *
 * They are written in assembler directives inside functions that are never called: strings become
 * bytes without pointers, sizes are differences of labels, and what only the compiler knows (sizes,
 * signedness, values of enumerators) comes in as immediate operands. An inline function stands for
 * the fields of an event class or the mappings of an enumeration, so that every instance of the
 * class and every field of the enumeration gets its own copy, which C's initialisers cannot do. The
 * directives of a function stay in order: they are volatile, and there is no control flow.
 *
 * Local labels: 7709 ends an event, 7708 a field, 7707 a mapping.
 * The format and its readers: docs/formats/provider.md.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_DESCRIBE_H_
#define WEFT_DETAIL_DESCRIBE_H_

#include "abi.h"
#include "compiler.h"
#include "types.h"

#define WEFT_DESC_SECTION WEFT_DESC_OF_PROVIDER
#define WEFT_DESC_OF_PROVIDER ".pushsection weft_desc,\"a\",@progbits\n\t"
#define WEFT_DESC_END WEFT_DESC_END_OF_PROVIDER
#define WEFT_DESC_END_OF_PROVIDER "\n\t.popsection"
#define WEFT_DESC_NUMBER(x) "i"((long long)(x))
/* A value of 64 bits takes two operands: gcc prints none beyond 32 bits. */
#define WEFT_DESC_HALVES(x) \
  "i"((int)(unsigned)(unsigned long long)(x)), "i"((int)((unsigned long long)(x) >> 32))

/* Describes fields. The body of WEFT_DESCRIBE_FIELDS is a function of its own. */
#define WEFT_DESCRIBE_FIELDS(fields) WEFT_WALK(WEFT_DESCRIBE_A fields)
#define WEFT_DESCRIBE_A(kind, when, ...) \
  WEFT_DESCRIBE_##kind(WEFT_FLAG_##when, __VA_ARGS__) WEFT_DESCRIBE_B
#define WEFT_DESCRIBE_B(kind, when, ...) \
  WEFT_DESCRIBE_##kind(WEFT_FLAG_##when, __VA_ARGS__) WEFT_DESCRIBE_A
#define WEFT_DESCRIBE_A_END
#define WEFT_DESCRIBE_B_END
#define WEFT_FLAG_weft_recorded 0
#define WEFT_FLAG_weft_nowrite WEFT_FIELD_NOWRITE

/* Writes a field up to its name. The end follows by itself, or after an enumeration's mappings. */
#define WEFT_DESCRIBE_FIELD(kind, flags, elem_size, base, count, name, length_size, length_flags) \
  __asm__ __volatile__(WEFT_DESC_SECTION                                                          \
                       ".4byte 7708f - .\n\t"                                                     \
                       ".byte %c0, %c1, %c2, %c3\n\t"                                             \
                       ".4byte %c4\n\t"                                                           \
                       ".2byte %c5\n\t"                                                           \
                       ".byte %c6, %c7\n\t"                                                       \
                       ".asciz \"" #name "\"" WEFT_DESC_END                                       \
                       :                                                                          \
                       : WEFT_DESC_NUMBER(kind), WEFT_DESC_NUMBER(flags),                         \
                         WEFT_DESC_NUMBER(elem_size), WEFT_DESC_NUMBER(base),                     \
                         WEFT_DESC_NUMBER(count), WEFT_DESC_NUMBER(sizeof(#name)),                \
                         WEFT_DESC_NUMBER(length_size), WEFT_DESC_NUMBER(length_flags));
#define WEFT_DESCRIBE_LABEL(label) __asm__ __volatile__(WEFT_DESC_SECTION label ":" WEFT_DESC_END);

#define WEFT_DESCRIBE_weft_integer(when, type, name, value, flags, base)                    \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_INTEGER, (when) | (flags) | WEFT_INTEGER_FLAGS(type), \
                      sizeof(type), base, 0, name, 0, 0)                                    \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_float(when, type, name, value)                                     \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_FLOAT, (when) | WEFT_FIELD_SIGNED, sizeof(type), 10, 0, \
                      name, 0, 0)                                                             \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_string(when, name, value)                                          \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_STRING, (when) | WEFT_FIELD_TEXT, 1, 10, 0, name, 0, 0) \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_array(when, type, name, value, count, flags, base)       \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_ARRAY,                                        \
                      (when) | (flags) | WEFT_ELEMENT_FLAGS(type) |                 \
                          (WEFT_ARRAY_INLINE(type, count) ? WEFT_FIELD_INLINE : 0), \
                      sizeof(type), base, count, name, 0, 0)                        \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_sequence(when, type, name, value, length_type, length, flags, base) \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_SEQUENCE, (when) | (flags) | WEFT_ELEMENT_FLAGS(type),   \
                      sizeof(type), base, 0, name, sizeof(length_type),                        \
                      WEFT_IS_SIGNED(length_type) ? WEFT_FIELD_SIGNED : 0)                     \
  WEFT_DESCRIBE_LABEL("7708")
/* The media type is pasted as the source writes it, after its macros: it is a string literal. */
#define WEFT_DESCRIBE_MEDIA_TYPE(media_type)                                         \
  __asm__ __volatile__(WEFT_DESC_SECTION                                             \
                       ".ascii " WEFT_TEXT(media_type) "\n\t.byte 0" WEFT_DESC_END); \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_fixed_blob(when, name, value, count, media_type)                        \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_ARRAY,                                                       \
                      (when) | (WEFT_ARRAY_INLINE(uint8_t, count) ? WEFT_FIELD_INLINE : 0), 1, 16, \
                      count, name, 0, 0)                                                           \
  WEFT_DESCRIBE_MEDIA_TYPE(media_type)
#define WEFT_DESCRIBE_weft_variable_blob(when, name, value, length_type, length, media_type) \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_SEQUENCE, when, 1, 16, 0, name, sizeof(length_type),   \
                      WEFT_IS_SIGNED(length_type) ? WEFT_FIELD_SIGNED : 0)                   \
  WEFT_DESCRIBE_MEDIA_TYPE(media_type)
#define WEFT_DESCRIBE_weft_enum(when, provider, enumeration, type, name, value)                  \
  WEFT_DESCRIBE_FIELD(WEFT_FIELD_KIND_ENUM, (when) | WEFT_INTEGER_FLAGS(type), sizeof(type), 10, \
                      weft_enum_count_##provider##___##enumeration, name, 0, 0)                  \
  weft_enum_##provider##___##enumeration();                                                      \
  WEFT_DESCRIBE_LABEL("7708")
#define WEFT_DESCRIBE_weft_unused(...)

/* Writes the mappings of an enumeration. A label is pasted as the source writes it: the assembler
 * knows C's escapes. weft_auto values go on from the mapping before, or from 0. */
#define WEFT_DESCRIBE_ENUM(values)                  \
  __asm__ __volatile__(".set .Lweft_enum_next, 0"); \
  WEFT_WALK(WEFT_MAPPING_A values)
#define WEFT_MAPPING_A(kind, label, ...) WEFT_MAPPING_##kind(label, __VA_ARGS__) WEFT_MAPPING_B
#define WEFT_MAPPING_B(kind, label, ...) WEFT_MAPPING_##kind(label, __VA_ARGS__) WEFT_MAPPING_A
#define WEFT_MAPPING_A_END
#define WEFT_MAPPING_B_END
#define WEFT_MAPPING_LABEL(label) \
  __asm__ __volatile__(WEFT_DESC_SECTION ".ascii " #label "\n\t.byte 0\n7707:" WEFT_DESC_END);
#define WEFT_MAPPING_weft_range(label, begin, end)                                          \
  __asm__ __volatile__(                                                                     \
      WEFT_DESC_SECTION                                                                     \
      ".4byte 7707f - ., 0\n\t"                                                             \
      ".4byte %c0, %c1, %c2, %c3\n\t"                                                       \
      ".set .Lweft_enum_next, (%c3 * 65536 * 65536) + (%c2 & 0xffffffff) + 1" WEFT_DESC_END \
      :                                                                                     \
      : WEFT_DESC_HALVES(begin), WEFT_DESC_HALVES(end));                                    \
  WEFT_MAPPING_LABEL(label)
#define WEFT_MAPPING_weft_auto(label, ...)                                           \
  __asm__ __volatile__(WEFT_DESC_SECTION                                             \
                       ".4byte 7707f - ., 0\n\t"                                     \
                       ".8byte .Lweft_enum_next, .Lweft_enum_next\n\t"               \
                       ".set .Lweft_enum_next, .Lweft_enum_next + 1" WEFT_DESC_END); \
  WEFT_MAPPING_LABEL(label)

/* Properties that may be given after an event are collected in a pass of their own. */
#define WEFT_DESCRIBE_LOGLEVEL(provider, event, level)                        \
  __asm__ __volatile__(".set .Lweft_loglevel_" #provider "___" #event ", %c0" \
                       :                                                      \
                       : WEFT_DESC_NUMBER(level));
#define WEFT_DESCRIBE_URI(provider, event, uri)                          \
  __asm__ __volatile__(".set .Lweft_uri_" #provider "___" #event ", %c0" \
                       :                                                 \
                       : WEFT_DESC_NUMBER(sizeof(uri)));                 \
  __asm__ __volatile__(".macro weft_uri_" #provider "___" #event "\n\t.asciz " #uri "\n\t.endm");

/* Writes the header; weft_describe_CLASS() and WEFT_DESCRIBE_LABEL("7709") follow. 13:
 * DEBUG_LINE. */
#define WEFT_DESCRIBE_EVENT(provider, event, field_count)                                          \
  __asm__ __volatile__(WEFT_DESC_SECTION ".globl weft_desc_" #provider "___" #event                \
                                         "\n\t"                                                    \
                                         ".hidden weft_desc_" #provider "___" #event               \
                                         "\n"                                                      \
                                         "weft_desc_" #provider "___" #event                       \
                                         ":\n\t"                                                   \
                                         ".4byte 7709f - .\n\t"                                    \
                                         ".2byte %c0, %c1\n\t"                                     \
                                         ".ifdef .Lweft_loglevel_" #provider "___" #event          \
                                         "\n\t"                                                    \
                                         ".4byte .Lweft_loglevel_" #provider "___" #event          \
                                         "\n\t"                                                    \
                                         ".else\n\t.4byte 13\n\t.endif\n\t"                        \
                                         ".2byte %c2\n\t"                                          \
                                         ".ifdef .Lweft_uri_" #provider "___" #event               \
                                         "\n\t"                                                    \
                                         ".2byte .Lweft_uri_" #provider "___" #event               \
                                         "\n\t"                                                    \
                                         ".else\n\t.2byte 0\n\t.endif\n\t"                         \
                                         ".4byte 0, 0\n\t"                                         \
                                         ".asciz \"" #provider ":" #event                          \
                                         "\"\n\t"                                                  \
                                         ".ifdef .Lweft_uri_" #provider "___" #event               \
                                         "\n\t"                                                    \
                                         "weft_uri_" #provider "___" #event                        \
                                         "\n\t"                                                    \
                                         ".endif" WEFT_DESC_END                                    \
                       :                                                                           \
                       : WEFT_DESC_NUMBER(WEFT_EVENT_DESC_VERSION), WEFT_DESC_NUMBER(field_count), \
                         WEFT_DESC_NUMBER(sizeof(#provider ":" #event)));

#endif /* WEFT_DETAIL_DESCRIBE_H_ */
