/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers at run time: events whose descriptions (lib/abi/event.h) are built from tables in the
 * program, without the compiler's macros and without an ELF object that holds them. libweft.so
 * describes its state dump so; a source of events that is no traced program registers its events
 * with such tables.
 *
 * A source does, for each of its events:
 *
 *   static const struct weft_runtime_field fields[] = {
 *       {.name = "bytes", .kind = WEFT_FIELD_KIND_INTEGER, .elem_size = 8, .base = 10}};
 *   static const struct weft_runtime_event sent = {
 *       .name = "net:sent", .loglevel = 6, .fields = fields, .field_count = 1};
 *   int bytes = weft_runtime_provide(&sent, buffer, sizeof(buffer), &event);
 *
 * and has a struct weft_event (lib/abi/tracepoint.h). That struct describes the event's images, as
 * a compiled provider's does. The source owns the buffer and keeps it as long as the event.
 *
 * It is freestanding C without allocation or state: it may run in any thread and any signal
 * handler. docs/formats/event.md has the bytes.
 */
#ifndef WEFT_LIB_EVENT_RUNTIME_PROVIDER_H_
#define WEFT_LIB_EVENT_RUNTIME_PROVIDER_H_

#include "lib/abi/event.h"
#include "lib/abi/tracepoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A mapping of an enum: the values [begin, end], both included; int64 bits in a signed enum. */
struct weft_runtime_label {
  const char* label;
  uint64_t begin;
  uint64_t end;
};

/* A field; they stand in the order of the image. Kinds, flags and sizes go together as
 * lib/abi/event.h says. */
struct weft_runtime_field {
  const char* name;       /* an identifier; consumers refuse two fields of one name */
  uint8_t kind;           /* enum weft_field_kind */
  uint8_t flags;          /* enum weft_field_flag */
  uint8_t elem_size;      /* bytes of the value or of one element; STRING: 1 */
  uint8_t base;           /* 2, 8, 10 or 16: how to show integers; 0 for others */
  uint8_t length_size;    /* SEQUENCE: bytes of the length in the source language */
  uint8_t length_flags;   /* SEQUENCE: flags of the length integer */
  uint32_t count;         /* ARRAY: elements. ENUM: labels. Else 0 */
  const char* media_type; /* of a BLOB, maybe ""; NULL: no BLOB */
  const struct weft_runtime_label* labels; /* ENUM */
};

struct weft_runtime_event {
  const char* name; /* "provider:event" */
  const char* uri;  /* model.emf.uri; NULL: none */
  int32_t loglevel; /* 0 emergency to 14 debug */
  uint32_t field_count;
  const struct weft_runtime_field* fields;
  uint32_t size_multiple; /* zero bytes behind the fields make the size a multiple of it; 0: none */
};

/* Writes the description of `source` into `buffer`, which may have any alignment. Returns its
 * bytes; -ENOSPC: they are more than `room`; -EINVAL: no description has such a name, such fields
 * or such a size. `buffer` NULL with `room` 0: only returns the bytes. */
int weft_runtime_describe(const struct weft_runtime_event* source, void* buffer, uint32_t room);

/* Describes `source` in `buffer`, and fills what depends on the description in `event`: size, desc,
 * and the sizes of its images. The other members, which belong to the tracer and to a probe, stay.
 * Returns what weft_runtime_describe does; if that is an error, `event` is unchanged. */
int weft_runtime_provide(const struct weft_runtime_event* source, void* buffer, uint32_t room,
                         struct weft_event* event);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LIB_EVENT_RUNTIME_PROVIDER_H_ */
