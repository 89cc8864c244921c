/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the image of an event (weft/abi/event.h) on the probe's stack. Only probes call it, in the
 * thread that runs the tracepoint.
 *
 * Every value is copied when its expression is evaluated, before that full expression ends: the
 * next field's expression may use the same static buffer, and a C++ temporary dies with its
 * expression. Copies for segments lie on the probe's stack too, as far as WEFT_ENCODE_ROOM suffices
 * (signal stacks are small). Longer ones lie in blocks that libweft.so lends until the event was
 * emitted (docs/adr/0024).
 *
 * A field of the fixed part is stored once, in its final place. (libweft.so copies the fixed part
 * by larger loads, which wait until these stores have left the store buffer; nothing else waits for
 * those, since reading the clock takes longer. Whole words, put together in registers, cost more
 * instructions and were slower.) `at` is a constant at each call once the probe is inlined, so that
 * everything but the stores disappears from -O1 on.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_ENCODE_H_
#define WEFT_DETAIL_ENCODE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "compiler.h"
#include "object.h"

#define WEFT_ENCODE_ROOM 256 /* bytes */

struct weft_encoder {
  uint64_t* fixed;
  struct weft_segment* segments;
  uint32_t at; /* bytes of the fixed part so far */
  uint32_t segment_count;
  char* room; /* where the next copy goes */
  uint32_t room_left;
  struct weft_event* event;
  struct weft_kept** kept; /* libweft.so's blocks */
};

/* Returns memory for a long value, or the other results of struct weft_library's `keep`. An older
 * libweft.so lends none. */
WEFT_COLD void* weft_keep(struct weft_event* event, struct weft_kept** kept, uint32_t size) {
  const struct weft_library* library = WEFT_LIBRARY;
  if (!library || library->size < offsetof(struct weft_library, probe_of) + sizeof(void*)) {
    return NULL;
  }
  return library->keep(event, kept, size);
}

/* The cleanup of a probe's list of blocks, also when an expression throws. */
WEFT_INLINE void weft_release_kept(struct weft_kept** kept) {
  if (WEFT_UNLIKELY(*kept != NULL)) WEFT_LIBRARY->release(*kept);
}

/* `data` may be NULL where `size` is 0. */
WEFT_INLINE void weft_encode_bytes(struct weft_encoder* e, const void* data, uint32_t size) {
  if (size > 0) memcpy((char*)e->fixed + e->at, data, size);
  e->at += size;
}

/* Zeros up to a whole word: that much is copied. */
WEFT_INLINE void weft_encode_end(struct weft_encoder* e) {
  memset((char*)e->fixed + e->at, 0, -e->at & 7);
}

/* Appends the low `size` bytes (1 to 8) of a value. */
WEFT_INLINE void weft_encode_integer(struct weft_encoder* e, uint64_t value, uint32_t size) {
  weft_encode_bytes(e, &value, size);
}

WEFT_INLINE void weft_encode_float(struct weft_encoder* e, float value) {
  weft_encode_bytes(e, &value, sizeof(value));
}

WEFT_INLINE void weft_encode_double(struct weft_encoder* e, double value) {
  weft_encode_bytes(e, &value, sizeof(value));
}

/* A segment of `size` bytes: those at `data`, `used` of them, then zeros. Copied. `data` may be
 * NULL where `used` is 0. */
WEFT_INLINE void weft_encode_segment(struct weft_encoder* e, const void* data, uint32_t used,
                                     uint32_t size) {
  struct weft_segment* segment = &e->segments[e->segment_count++];
  char* copy = e->room;
  segment->reserved = 0;
  if (WEFT_UNLIKELY(size > e->room_left)) {
    copy = (char*)weft_keep(e->event, e->kept, size);
    if ((uintptr_t)copy <= WEFT_SEGMENT_NO_MEMORY) {
      segment->data = NULL;
      segment->size = WEFT_SEGMENT_IS_MISSING;
      segment->reserved = (uint32_t)(uintptr_t)copy;
      return;
    }
  } else {
    e->room += size;
    e->room_left -= size;
  }
  if (used > 0) memcpy(copy, data, used);
  if (size > used) memset(copy + used, 0, size - used);
  segment->data = copy;
  segment->size = size;
}

WEFT_INLINE void weft_encode_string(struct weft_encoder* e, const char* text) {
  size_t size;
  if (!text) text = "(null)";
  size = strlen(text);
  if (size > UINT32_MAX) size = UINT32_MAX;
  weft_encode_integer(e, size, 4);
  weft_encode_segment(e, text, (uint32_t)size, (uint32_t)size);
}

/* Returns the number of bytes before a NUL, at most `size`. Text is never read beyond its NUL, as a
 * caller that gave a short string for a long field expects. */
WEFT_INLINE size_t weft_text_size(const void* text, size_t size) {
  const void* end = memchr(text, 0, size);
  return end ? (size_t)((const char*)end - (const char*)text) : size;
}

/* `text`: shorter ones are filled up with NULs. */
WEFT_INLINE void weft_encode_array(struct weft_encoder* e, const void* data, uint32_t size,
                                   int text) {
  const uint32_t used = text ? (uint32_t)weft_text_size(data, size) : size;
  if (size > WEFT_INLINE_ARRAY_MAX) {
    weft_encode_segment(e, data, used, size);
    return;
  }
  weft_encode_bytes(e, data, used);
  if (text) {
    memset((char*)e->fixed + e->at, 0, size - used);
    e->at += size - used;
  }
}

/* `signed_count` is the count if its type is signed. An impossible count (negative, or more than 4
 * GiB of elements) must not crash the program: it becomes 0, or a size that libweft.so discards as
 * too large. */
WEFT_INLINE void weft_encode_sequence(struct weft_encoder* e, const void* data, uint64_t count,
                                      int64_t signed_count, uint32_t elem_size, int text) {
  if (!data || signed_count < 0) count = 0;
  if (count > UINT32_MAX / elem_size) count = UINT32_MAX / elem_size;
  if (text && count > 0) count = weft_text_size(data, count);
  weft_encode_integer(e, count, 4);
  weft_encode_segment(e, data, (uint32_t)count * elem_size, (uint32_t)count * elem_size);
}

#endif /* WEFT_DETAIL_ENCODE_H_ */
