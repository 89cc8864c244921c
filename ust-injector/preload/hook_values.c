// SPDX-License-Identifier: Apache-2.0
// See hook_values.h.
#include "ust-injector/preload/hook_values.h"

#if defined(__x86_64__)

#include "ust-injector/preload/seccomp.h"

#define WEFT_TEXT_PIECE 64u  // bytes that are read at once; pages are multiples of it
#define WEFT_WORD_MASK ((uint64_t)7)

void weft_hook_no_pieces(struct weft_hook_pieces* pieces) {
  pieces->count = 0;
  pieces->bytes = 0;
  pieces->faults = 0;
}

void weft_hook_keep(struct weft_hook_pieces* to, const struct weft_hook_pieces* from) {
  to->count = from->count;
  to->bytes = from->bytes;
  to->faults = from->faults;
  __builtin_memcpy(to->addresses, from->addresses, sizeof(to->addresses));
  __builtin_memcpy(to->memory, from->memory, from->bytes);
  for (uint32_t i = 0; i < from->count; ++i) {
    to->segments[i] = from->segments[i];
    to->segments[i].data = to->memory + ((const char*)from->segments[i].data - from->memory);
  }
}

static uint32_t put_text(struct weft_hook_pieces* pieces, const char* text, uint32_t size) {
  const uint32_t room = WEFT_HOOK_TEXT_BYTES - pieces->bytes;
  if (size > room) size = room;
  __builtin_memcpy(pieces->memory + pieces->bytes, text, size);
  pieces->bytes += size;
  return size;
}

// Copies the text at the program's address, up to its NUL or to memory that cannot be read. Returns
// its bytes. A piece of the text lies in one page, and begins at a multiple of 8, as peek takes it.
static uint32_t read_text(struct weft_hook_pieces* pieces, uint64_t from, bool* is_fault) {
  char piece[WEFT_TEXT_PIECE];
  uint32_t size = 0;
  while (pieces->bytes < WEFT_HOOK_TEXT_BYTES) {
    const uint64_t at = from & ~WEFT_WORD_MASK;
    const uint64_t end = (at | (WEFT_TEXT_PIECE - 1)) + 1;
    if (weft_seccomp_peek(piece, at, end - at) != WEFT_PEEK_COPIED) {
      *is_fault = size == 0;
      return size;
    }
    uint32_t i = (uint32_t)(from - at);
    const uint32_t first = i;
    while (i < end - at && piece[i] != 0) ++i;
    size += put_text(pieces, piece + first, i - first);
    if (i < end - at) return size;
    from = end;
  }
  return size;
}

// Copies the words that have these bytes, which lie in the same pages, and moves the bytes to the
// begin of the free memory.
static bool read_bytes(struct weft_hook_pieces* pieces, uint64_t from, uint32_t size) {
  char* to = pieces->memory + pieces->bytes;
  const uint64_t at = from & ~WEFT_WORD_MASK;
  const uint64_t end = (from + size + WEFT_WORD_MASK) & ~WEFT_WORD_MASK;
  if (size == 0) return true;
  if (end <= at || weft_seccomp_peek(to, at, end - at) != WEFT_PEEK_COPIED) return false;
  for (uint32_t i = 0; i < size; ++i) to[i] = to[i + (from - at)];
  pieces->bytes += size;
  return true;
}

// Reads a number of `size` bytes, at most 8.
static bool read_number(uint64_t from, uint32_t size, uint64_t* number) {
  uint64_t words[2];
  const uint64_t at = from & ~WEFT_WORD_MASK;
  const uint64_t bytes = from - at + size > sizeof(uint64_t) ? 16 : 8;
  *number = 0;
  if (at + bytes < at || weft_seccomp_peek(words, at, bytes) != WEFT_PEEK_COPIED) return false;
  __builtin_memcpy(number, (const uint8_t*)words + (from - at), size);
  return true;
}

static const struct weft_hook_detail* detail_of(const struct weft_hook* hook, uint32_t i) {
  return hook->details != 0 ? (const struct weft_hook_detail*)(uintptr_t)hook->details + i : NULL;
}

// Takes the steps of a path from `address`, the last one to `last_size` bytes.
static bool follow(const struct weft_hook_detail* detail, uint32_t last_size, uint64_t* address) {
  for (uint32_t i = 0; i < detail->steps && i < WEFT_HOOK_MAX_STEPS; ++i) {
    const uint32_t size = i + 1u == detail->steps ? last_size : (uint32_t)sizeof(uint64_t);
    if (!read_number(*address + (uint64_t)(int64_t)detail->offsets[i], size, address)) return false;
  }
  return true;
}

// Returns how many bytes the call says that there are, at most what there is room for.
static uint32_t length_of(const struct weft_hook_registers* registers,
                          const struct weft_hook_detail* detail, uint32_t room) {
  const struct weft_hook_value* of = &detail->length_of;
  uint64_t length = detail->length;
  if (of->source != WEFT_HOOK_NONE) {
    const uint32_t unused = 64u - 8u * (of->size & 7u);
    length = weft_hook_value_of(registers, of);
    if (unused != 64) length = length << unused >> unused;
    const uint32_t sign = unused == 64 ? 63 : 63 - unused;
    if (of->kind == WEFT_HOOK_SIGNED && (length >> sign & 1) != 0) length = 0;
  }
  return length < room ? (uint32_t)length : room;
}

// Reads what a value says; returns what its image has. `address`: of its register or its place.
static uint64_t read_value(const struct weft_hook_registers* registers,
                           const struct weft_hook* hook, uint32_t i, uint64_t address,
                           struct weft_hook_pieces* pieces) {
  const struct weft_hook_value* value = &hook->values[i];
  const struct weft_hook_detail* detail = detail_of(hook, i);
  const bool is_number = value->kind == WEFT_HOOK_NUMBER;
  bool is_fault = false;
  if (is_number && (detail == NULL || detail->steps == 0)) return address;
  const bool may_read = weft_seccomp_may_peek();
  if (!may_read) is_fault = true;
  if (!is_fault && detail != NULL && !follow(detail, is_number ? value->size : 8, &address))
    is_fault = true;
  if (is_number) {
    if (is_fault) pieces->faults |= (uint16_t)(1u << i);
    return is_fault ? 0 : address;
  }
  if (detail != NULL) address += (uint64_t)(int64_t)detail->tail;
  struct weft_segment* segment = &pieces->segments[pieces->count++];
  segment->data = pieces->memory + pieces->bytes;
  segment->reserved = 0;
  segment->size = 0;
  if (!is_fault && value->kind == WEFT_HOOK_TEXT) {
    segment->size = read_text(pieces, address, &is_fault);
  } else if (!is_fault && detail != NULL) {
    const uint32_t size = length_of(registers, detail, WEFT_HOOK_TEXT_BYTES - pieces->bytes);
    is_fault = !read_bytes(pieces, address, size);
    if (!is_fault) segment->size = size;
  }
  if (is_fault) {
    pieces->faults |= (uint16_t)(1u << i);
    if (value->kind == WEFT_HOOK_TEXT)
      segment->size =
          may_read ? put_text(pieces, "(fault)", 7) : put_text(pieces, "(not read)", 10);
  }
  return segment->size;
}

static bool is_late(const struct weft_hook* hook, uint32_t i) {
  const struct weft_hook_detail* detail = detail_of(hook, i);
  return detail != NULL && detail->at_exit != 0;
}

uint8_t* weft_hook_put_arguments(const struct weft_hook_registers* registers,
                                 const struct weft_hook* hook, uint8_t* to,
                                 struct weft_hook_pieces* pieces) {
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
    const uint64_t address = weft_hook_value_of(registers, &hook->values[i]);
    pieces->addresses[i] = address;
    if (is_late(hook, i)) continue;
    const uint64_t value = read_value(registers, hook, i, address, pieces);
    to = weft_hook_put(to, value, hook->values[i].size);
  }
  return to;
}

uint8_t* weft_hook_put_results(const struct weft_hook_registers* registers,
                               const struct weft_hook* hook, uint8_t* to,
                               struct weft_hook_pieces* pieces) {
  if (hook->result.source != WEFT_HOOK_NONE) {
    uint64_t value = weft_hook_value_of(registers, &hook->result);
    if (hook->result.kind == WEFT_HOOK_TEXT) {
      bool is_fault = !weft_seccomp_may_peek();
      struct weft_segment* segment = &pieces->segments[pieces->count++];
      segment->data = pieces->memory + pieces->bytes;
      segment->reserved = 0;
      if (is_fault) {
        value = put_text(pieces, "(not read)", 10);
      } else {
        value = read_text(pieces, value, &is_fault);
        if (is_fault) value = put_text(pieces, "(fault)", 7);
      }
      segment->size = (uint32_t)value;
    }
    to = weft_hook_put(to, value, hook->result.size);
  }
  for (uint32_t i = 0; i < hook->value_count && i < WEFT_HOOK_MAX_VALUES; ++i) {
    if (!is_late(hook, i)) continue;
    const uint64_t value = read_value(registers, hook, i, pieces->addresses[i], pieces);
    to = weft_hook_put(to, value, hook->values[i].size);
  }
  return to;
}

#endif
