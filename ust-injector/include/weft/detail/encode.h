/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the image of an event (weft/abi/event.h) on the probe's stack. Called by probes only, in the
 * thread that runs the tracepoint.
 *
 * The fixed part is made in a register, one 8-byte word at a time, and stored as whole aligned words:
 * libweft.so copies it by 8-byte loads, and a load that covers several smaller stores still in the
 * store buffer waits for all of them (a store-forwarding stall, longer than the whole event).
 * `at` is a constant at each call once the probe is inlined, so that the shifts are constants too and
 * everything but the stores disappears from -O1 on.
 */
#ifndef WEFT_DETAIL_ENCODE_H_
#define WEFT_DETAIL_ENCODE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "compiler.h"

struct weft_encoder {
  uint64_t word; /* the bytes of the current word so far, zero above them */
  uint32_t at;   /* bytes of the fixed part so far */
  uint32_t segment_count;
  uint64_t* fixed;
  struct weft_segment* segments;
};

/* `size` bytes (1 to 8) of `bits`, which is zero above them. */
WEFT_INLINE void weft_encode_bits(struct weft_encoder* e, uint64_t bits, uint32_t size) {
  const uint32_t used = e->at & 7;
  e->word |= bits << (8 * used);
  if (used + size >= 8) {
    e->fixed[e->at >> 3] = e->word;
    e->word = used + size > 8 ? bits >> (8 * (8 - used)) : 0;
  }
  e->at += size;
}

WEFT_INLINE void weft_encode_end(struct weft_encoder* e) {
  if (e->at & 7) e->fixed[e->at >> 3] = e->word;
}

/* Cuts a value that was sign-extended. */
WEFT_INLINE void weft_encode_integer(struct weft_encoder* e, uint64_t value, uint32_t size) {
  weft_encode_bits(e, size < 8 ? value & ((1ull << (8 * (size & 7))) - 1) : value, size);
}

WEFT_INLINE void weft_encode_float(struct weft_encoder* e, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  weft_encode_bits(e, bits, sizeof(bits));
}

WEFT_INLINE void weft_encode_double(struct weft_encoder* e, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  weft_encode_bits(e, bits, sizeof(bits));
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
  weft_encode_bits(e, size, 4);
  weft_encode_segment(e, text, (uint32_t)size);
}

/* Bytes before a NUL, at most `size`: text is never read beyond its NUL, as whoever gave a short
 * string for a long field expects. */
WEFT_INLINE size_t weft_text_size(const void* text, size_t size) {
  const void* end = memchr(text, 0, size);
  return end ? (size_t)((const char*)end - (const char*)text) : size;
}

/* Up to 8 bytes at p + 8 * index, of `size` in all. */
WEFT_INLINE void weft_encode_chunk(struct weft_encoder* e, const unsigned char* p, uint32_t index,
                                   uint32_t size) {
  uint64_t bits = 0;
  if (size <= 8 * index) return;
  size -= 8 * index;
  if (size > 8) size = 8;
  memcpy(&bits, p + 8 * index, size);
  weft_encode_bits(e, bits, size);
}

/* `size` bytes (0 to WEFT_INLINE_ARRAY_MAX), without a loop: `at` stays a constant. */
WEFT_INLINE void weft_encode_bytes(struct weft_encoder* e, const void* data, uint32_t size) {
  const unsigned char* p = (const unsigned char*)data;
  weft_encode_chunk(e, p, 0, size);
  weft_encode_chunk(e, p, 1, size);
  weft_encode_chunk(e, p, 2, size);
  weft_encode_chunk(e, p, 3, size);
  weft_encode_chunk(e, p, 4, size);
  weft_encode_chunk(e, p, 5, size);
  weft_encode_chunk(e, p, 6, size);
  weft_encode_chunk(e, p, 7, size);
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
  weft_encode_bits(e, count, 4);
  weft_encode_segment(e, data, (uint32_t)count * elem_size);
}

#endif /* WEFT_DETAIL_ENCODE_H_ */
