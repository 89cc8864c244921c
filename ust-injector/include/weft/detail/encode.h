/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the image of an event (weft/abi/event.h) on the probe's stack. Called by probes only, in the
 * thread that runs the tracepoint.
 *
 * A field of the fixed part is one store to where it belongs. (libweft.so copies the fixed part by
 * larger loads, which wait until these stores have left the store buffer; nothing else waits for those,
 * since reading the clock takes longer. Whole words, put together in registers, cost more instructions
 * and were slower.) `at` is a constant at each call once the probe is inlined, so that everything but
 * the stores disappears from -O1 on.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_ENCODE_H_
#define WEFT_DETAIL_ENCODE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "compiler.h"

struct weft_encoder {
  uint64_t* fixed;
  struct weft_segment* segments;
  uint32_t at; /* bytes of the fixed part so far */
  uint32_t segment_count;
};

/* `data` may be NULL where `size` is 0. */
WEFT_INLINE void weft_encode_bytes(struct weft_encoder* e, const void* data, uint32_t size) {
  if (size > 0) memcpy((char*)e->fixed + e->at, data, size);
  e->at += size;
}

/* Zeros up to a whole word: that much is copied. */
WEFT_INLINE void weft_encode_end(struct weft_encoder* e) {
  memset((char*)e->fixed + e->at, 0, -e->at & 7);
}

/* The low `size` bytes (1 to 8) of a value. */
WEFT_INLINE void weft_encode_integer(struct weft_encoder* e, uint64_t value, uint32_t size) {
  weft_encode_bytes(e, &value, size);
}

WEFT_INLINE void weft_encode_float(struct weft_encoder* e, float value) {
  weft_encode_bytes(e, &value, sizeof(value));
}

WEFT_INLINE void weft_encode_double(struct weft_encoder* e, double value) {
  weft_encode_bytes(e, &value, sizeof(value));
}

WEFT_INLINE void weft_encode_segment(struct weft_encoder* e, const void* data, uint32_t size) {
  struct weft_segment* segment = &e->segments[e->segment_count++];
  segment->data = data;
  segment->size = size;
  segment->reserved = 0;
}

WEFT_INLINE void weft_encode_string(struct weft_encoder* e, const char* text) {
  size_t size;
  if (!text) text = "(null)";
  size = strlen(text);
  if (size > UINT32_MAX) size = UINT32_MAX;
  weft_encode_integer(e, size, 4);
  weft_encode_segment(e, text, (uint32_t)size);
}

/* Bytes before a NUL, at most `size`: text is never read beyond its NUL, as whoever gave a short
 * string for a long field expects. */
WEFT_INLINE size_t weft_text_size(const void* text, size_t size) {
  const void* end = memchr(text, 0, size);
  return end ? (size_t)((const char*)end - (const char*)text) : size;
}

/* Text for a field of `size` bytes: as it is or, if it is shorter, filled up with NULs in `pad`, which
 * has `room` bytes, more than `size`. */
WEFT_INLINE const void* weft_fill_text(char* pad, size_t room, const void* text, size_t size) {
  const size_t used = weft_text_size(text, size);
  if (used == size) return text;
  memset(pad, 0, room);
  memcpy(pad, text, used);
  return pad;
}

WEFT_INLINE void weft_encode_array(struct weft_encoder* e, const void* data, uint32_t size) {
  if (size <= WEFT_INLINE_ARRAY_MAX) {
    weft_encode_bytes(e, data, size);
  } else {
    weft_encode_segment(e, data, size);
  }
}

/* `signed_count` is the count if its type is signed. A count that cannot be true (negative, or more than 4 GiB of elements) is no reason to crash: it
 * becomes 0, or what libweft.so discards as too large. */
WEFT_INLINE void weft_encode_sequence(struct weft_encoder* e, const void* data, uint64_t count,
                                      int64_t signed_count, uint32_t elem_size, int text) {
  if (!data || signed_count < 0) count = 0;
  if (count > UINT32_MAX / elem_size) count = UINT32_MAX / elem_size;
  if (text && count > 0) count = weft_text_size(data, count);
  weft_encode_integer(e, count, 4);
  weft_encode_segment(e, data, (uint32_t)count * elem_size);
}

#endif /* WEFT_DETAIL_ENCODE_H_ */
