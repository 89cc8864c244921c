/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The event model describes an event, and how its field values lie in memory and in a ring. One
 * description serves the preloaded library, the kernel module and the daemons (property P6).
 *
 * Terms
 *   description  flat bytes without pointers, made by the compiler in the traced program
 *                (include/weft) or by the agent (kernel events). It is copied as it is into the
 *                ring set, so that a killed process loses no schema. Every reader treats it as
 *                foreign bytes.
 *   image        the values of one event while it is being emitted:
 *                  fixed part  the recorded fields' fixed bytes, packed, in field order, then the
 *                              `nowrite` fields' fixed bytes, packed, in field order;
 *                  segments    (pointer, bytes) of variable or long data, the recorded fields'
 *                              segments in field order, then those of `nowrite` fields. Each was
 *                              copied when its field's expression was evaluated.
 *                Every field's offset in the fixed part and every segment's index is a constant of
 *                the description. Filters read the image; nothing else describes an event twice.
 *   payload      what a record in a ring holds: the recorded fixed part, then the recorded
 *                segments' bytes one after the other, nothing between them.
 *
 * The parts of the image for each kind of field:
 *   INTEGER, ENUM, FLOAT  elem_size bytes in the fixed part, in the machine's byte order, or
 *                         big-endian with WEFT_FIELD_NETWORK.
 *   STRING                u32 length in bytes without a NUL in the fixed part; the bytes, without a
 *                         NUL, as a segment. (The memory may change under the tracer: a reader
 *                         stops at a NUL that it finds before the length; the bytes may be no
 *                         UTF-8.)
 *   ARRAY                 with WEFT_FIELD_INLINE count * elem_size bytes in the fixed part, else
 *                         nothing there and count * elem_size bytes as a segment. INLINE is used
 *                         for at most WEFT_INLINE_ARRAY_MAX bytes.
 *   SEQUENCE              u32 number of elements in the fixed part; elements as a segment.
 * A BLOB (bytes of a media type) is an ARRAY or SEQUENCE of one unsigned byte an element, with the
 * media type behind its name; a reader that does not know BLOBs ignores the media type. With
 * WEFT_FIELD_TEXT the elements (of 1 byte) are text: readers show them up to a NUL.
 *
 * Extension rules: inside a version one only appends, sizes are explicit, a reader skips what it
 * does not know inside `size`; reserved is zero and checked. All integers are little-endian.
 */
#ifdef WEFT_IN_PROGRAM
#pragma GCC system_header
#endif
#ifndef WEFT_LIB_ABI_EVENT_H_
#define WEFT_LIB_ABI_EVENT_H_

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#ifdef __cplusplus
#define WEFT_ABI_ASSERT(cond, text) static_assert(cond, text)
#else
/* Programs include this as C99, too, where clang's -Wpedantic accepts no _Static_assert without
 * __extension__. */
#define WEFT_ABI_ASSERT(cond, text) __extension__ _Static_assert(cond, text)
#endif

#define WEFT_EVENT_DESC_VERSION 1u
#define WEFT_EVENT_DESC_MAX_BYTES (256u * 1024u) /* a description larger than this is refused */
#define WEFT_EVENT_MAX_FIELDS 512u
#define WEFT_EVENT_NAME_MAX 512u /* bytes of "provider:event" with its NUL */
#define WEFT_INLINE_ARRAY_MAX 64u

enum weft_field_kind {
  WEFT_FIELD_KIND_INTEGER = 1,
  WEFT_FIELD_KIND_FLOAT = 2, /* elem_size 4 or 8, IEEE 754 */
  WEFT_FIELD_KIND_STRING = 3,
  WEFT_FIELD_KIND_ARRAY = 4,
  WEFT_FIELD_KIND_SEQUENCE = 5,
  WEFT_FIELD_KIND_ENUM = 6,
};

enum weft_field_flag {
  WEFT_FIELD_SIGNED = 1 << 0,
  WEFT_FIELD_NETWORK = 1 << 1, /* big-endian */
  WEFT_FIELD_TEXT = 1 << 2,
  WEFT_FIELD_NOWRITE = 1 << 3, /* only for filters, never recorded */
  WEFT_FIELD_INLINE = 1 << 4,
  WEFT_FIELD_FLOAT_ELEMENTS = 1 << 5, /* array or sequence of floats */
  WEFT_FIELD_POINTER = 1 << 6,        /* an address; `base` says how it is shown */
};

/* Followed by name ("provider:event", NUL), uri (NUL, only if uri_size > 0), then the fields. It is
 * packed, because in a program's section it is at any address. The structs below are copied before
 * they are read. */
struct __attribute__((packed)) weft_event_desc {
  uint32_t size; /* bytes of everything, this header included */
  uint16_t version;
  uint16_t field_count;
  int32_t loglevel;   /* 0 emergency to 14 debug, LTTng's scale */
  uint16_t name_size; /* bytes with the NUL */
  uint16_t uri_size;  /* model.emf.uri, bytes with the NUL, 0: none */
  uint32_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_event_desc) == 24, "event description header is 24 bytes");

/* Followed by name (NUL), then, for ENUM, `count` mappings, and for a BLOB its media type (NUL). */
struct weft_field_desc {
  uint32_t size; /* bytes of this field's description, name and mappings included */
  uint8_t kind;
  uint8_t flags;
  uint8_t elem_size;    /* bytes of the value or of one element */
  uint8_t base;         /* 2, 8, 10 or 16: how to show integers */
  uint32_t count;       /* ARRAY: elements. ENUM: mappings. Else 0 */
  uint16_t name_size;   /* bytes with the NUL */
  uint8_t length_size;  /* SEQUENCE: bytes of the length in the source language (1, 2, 4, 8) */
  uint8_t length_flags; /* SEQUENCE: flags of the length integer (SIGNED) */
};
WEFT_ABI_ASSERT(sizeof(struct weft_field_desc) == 16, "field description header is 16 bytes");

/* Followed by the label (NUL). The range [begin, end] includes both. Values are compared as int64
 * or, in an unsigned enum, as uint64. */
struct weft_enum_mapping {
  uint32_t size; /* bytes of this mapping, label included */
  uint32_t reserved;
  uint64_t begin;
  uint64_t end;
};
WEFT_ABI_ASSERT(sizeof(struct weft_enum_mapping) == 24, "enum mapping header is 24 bytes");

/* Descriptions are packed byte after byte: none of these structs is aligned in place. */

struct weft_segment {
  const void* data;
  uint32_t size;     /* bytes; WEFT_SEGMENT_IS_MISSING: there is no copy, and data is NULL */
  uint32_t reserved; /* 0, or why there is none. The event is discarded, and counted so */
};
#define WEFT_SEGMENT_IS_MISSING 0xffffffffu
#define WEFT_SEGMENT_TOO_LARGE 0u
#define WEFT_SEGMENT_NO_MEMORY 1u

#endif /* WEFT_LIB_ABI_EVENT_H_ */
