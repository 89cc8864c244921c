/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what the writer's sections store, on one thread with an rseq area that no kernel knows: no
 * abort can happen, everything else is as usual. It is plain C without a test framework, so that
 * the arm64 build also runs in an emulator without rseq. Prints one line and ends with 0 if all
 * holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include "lib/ring/writer_x86_64.h"
#else
#include "lib/ring/writer_aarch64.h"
#endif

#define SUBBUF_SHIFT 12
#define SLOT_SHIFT 14
#define EXPECT(cond)                                            \
  do {                                                          \
    ++checks;                                                   \
    if (!(cond)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
      exit(1);                                                  \
    }                                                           \
  } while (0)

static unsigned checks;
static struct weft_slot slots[3];
static uint64_t memory[3 << (SLOT_SHIFT - 3)];
static uint64_t table[(sizeof(struct weft_writer_slots) + 3 * sizeof(struct weft_writer_slot)) / 8];
static struct weft_writer_slots* const mapped = (struct weft_writer_slots*)table;
static uint32_t rseq[8] __attribute__((aligned(32)));
static struct weft_writer_ring ring;

static uint8_t* data(unsigned slot) { return (uint8_t*)memory + ((size_t)slot << SLOT_SHIFT); }

static void set_up(enum weft_ring_mode mode) {
  memset(slots, 0, sizeof(slots));
  memset(memory, 0xee, sizeof(memory));
  for (unsigned i = 0; i < 3; ++i) {
    slots[i].head = WEFT_HEAD_INITIAL;
    mapped->slot[i] = (struct weft_writer_slot){&slots[i], data(i)};
    memset(data(i), 0, sizeof(struct weft_subbuf_header));
  }
  ring = (struct weft_writer_ring){.slots = mapped,
                                   .atomic_slot = 2,
                                   .subbuf_mask = (1u << SUBBUF_SHIFT) - 1,
                                   .subbuf_shift = SUBBUF_SHIFT,
                                   .slot_mask = (1u << SLOT_SHIFT) - 1,
                                   .subbufs = 4,
                                   .mode = mode};
  mapped->count = 2;
  rseq[1] = 5; /* cpu_id */
  rseq[6] = 1; /* mm_cid */
}

static intptr_t area(void) { return (char*)rseq - (char*)__builtin_thread_pointer(); }

static struct weft_record_class class_of(uint32_t words) {
  const uint32_t size = (uint32_t)sizeof(struct weft_record) + 8 * words;
  return (struct weft_record_class){weft_record_word0(size, 9), weft_record_increment(size), &ring,
                                    mapped, weft_record_boundary(SUBBUF_SHIFT)};
}

/* Writes a record of n words. For 1 to 4 words the section's code has the number as a constant;
   otherwise it uses the record's own. */
static bool write_of(const uint64_t* payload, uint32_t n) {
  const struct weft_record_class record = class_of(n);
  switch (n) {
    case 1:
      return weft_write_words(area(), WEFT_RSEQ_MM_CID_OFFSET, &record, payload, 1);
    case 2:
      return weft_write_words(area(), WEFT_RSEQ_MM_CID_OFFSET, &record, payload, 2);
    case 3:
      return weft_write_words(area(), WEFT_RSEQ_MM_CID_OFFSET, &record, payload, 3);
    case 4:
      return weft_write_words(area(), WEFT_RSEQ_MM_CID_OFFSET, &record, payload, 4);
    default:
      return weft_write_words(area(), WEFT_RSEQ_MM_CID_OFFSET, &record, payload, 0);
  }
}

static bool words(uint64_t value) {
  const uint64_t payload[2] = {value, ~value};
  return write_of(payload, 2);
}

static void records_are_laid_out_as_ring_h_says(void) {
  set_up(WEFT_RING_DISCARD);
  EXPECT(words(0x1122334455667788));
  EXPECT(slots[1].head == ((1ull << 32) | (32 + 32)));
  EXPECT(slots[0].head == WEFT_HEAD_INITIAL);
  struct weft_record r;
  uint64_t payload[2];
  memcpy(&r, data(1) + 32, sizeof(r));
  memcpy(payload, data(1) + 48, sizeof(payload));
  EXPECT(r.size == 32 && r.event == 9 && r.cpu == 5 && r.time != 0);
  EXPECT(payload[0] == 0x1122334455667788 && payload[1] == ~payload[0]);
  EXPECT(data(1)[64] == 0xee);

  const struct weft_piece pieces[3] = {{"abc", 3}, {"0123456789", 10}, {memory, 0}};
  const struct weft_record_parts parts = {weft_record_word0(29, 8), weft_record_increment(29),
                                          pieces, 3};
  EXPECT(weft_write_pieces(rseq, 24, &ring, &parts) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].head == ((2ull << 32) | (64 + 32)));
  memcpy(&r, data(1) + 64, sizeof(r));
  EXPECT(r.size == 29 && r.event == 8 && r.cpu == 5);
  EXPECT(memcmp(data(1) + 80, "abc0123456789", 13) == 0);
  EXPECT(data(1)[93] == 0xee);

  uint8_t long_bytes[3000];
  memset(long_bytes, 0x5a, sizeof(long_bytes));
  const struct weft_piece one = {long_bytes, 2999};
  const struct weft_record_parts big = {weft_record_word0(3015, 7), weft_record_increment(3015),
                                        &one, 1};
  EXPECT(weft_write_pieces(rseq, 24, &ring, &big) == WEFT_WRITE_COMMITTED);
  EXPECT(memcmp(data(1) + 112, long_bytes, 2999) == 0 && data(1)[112 + 2999] == 0xee);
}

static void words_of_any_number_are_copied_whole(void) {
  const uint64_t payload[6] = {11, 22, 33, 44, 55, 66};
  for (uint32_t n = 0; n <= 6; ++n) {
    set_up(WEFT_RING_DISCARD);
    EXPECT(write_of(payload, n));
    struct weft_record r;
    memcpy(&r, data(1) + 32, sizeof(r));
    EXPECT(r.size == 16 + 8 * n && r.event == 9 && r.cpu == 5 && r.time != 0);
    EXPECT(slots[1].head == ((1ull << 32) | (32 + r.size)));
    EXPECT(memcmp(data(1) + 48, payload, 8 * n) == 0);
    EXPECT(data(1)[48 + 8 * n] == 0xee);
  }
}

static void the_slot_is_the_cpus_where_there_is_no_mm_cid(void) {
  set_up(WEFT_RING_DISCARD);
  rseq[1] = 0;
  const uint64_t payload = 7;
  const struct weft_record_class record = class_of(1);
  EXPECT(weft_write_words(area(), WEFT_RSEQ_CPU_ID_OFFSET, &record, &payload, 1));
  EXPECT(slots[0].head == ((1ull << 32) | (32 + 24)) && slots[1].head == WEFT_HEAD_INITIAL);
}

static void leaving_stores_nothing(void) {
  set_up(WEFT_RING_DISCARD);
  rseq[1] = (uint32_t)-1;
  EXPECT(!words(1));
  rseq[1] = 5;
  rseq[6] = 2;
  EXPECT(!words(1));
  rseq[6] = 1;
  slots[1].closed = 1;
  EXPECT(!words(1));
  EXPECT(weft_count_discard(rseq, 24, &ring, WEFT_DISCARD_FULL) == WEFT_WRITE_CLOSED);
  slots[1].closed = 0;
  memset(&ring, 0, sizeof(ring)); /* as in a fork child */
  memset(table, 0, sizeof(table));
  EXPECT(!words(1));
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_NO_SLOT);
  EXPECT(slots[1].head == WEFT_HEAD_INITIAL && data(1)[32] == 0xee);
}

/* 126 records of 32 bytes fill a sub-buffer of 4096. */
static void fill(unsigned subbufs) {
  for (unsigned s = 0; s < subbufs; ++s) {
    for (unsigned i = 0; i < 126; ++i) EXPECT(words(i));
    EXPECT(!words(0));
    if (s + 1 < subbufs) {
      EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_COMMITTED);
    }
  }
}

static void discard_mode_waits_for_the_tail(void) {
  set_up(WEFT_RING_DISCARD);
  fill(4);
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_FULL);
  EXPECT(weft_count_discard(rseq, 24, &ring, WEFT_DISCARD_FULL) == WEFT_WRITE_COMMITTED);
  EXPECT(weft_count_discard(rseq, 24, &ring, WEFT_DISCARD_CONTENDED) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].discarded[WEFT_DISCARD_FULL] == 1);
  EXPECT(slots[1].discarded[WEFT_DISCARD_CONTENDED] == 1);
  slots[1].tail = (1u << SUBBUF_SHIFT) - 1;
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_FULL);
  slots[1].tail = 1u << SUBBUF_SHIFT;
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].head == WEFT_HEAD_INITIAL);
  struct weft_subbuf_header header;
  memcpy(&header, data(1), sizeof(header));
  EXPECT(header.sequence == 4 && header.records_before == 4 * 126);
  uint64_t pad;
  memcpy(&pad, data(1) + 3 * 4096 + 32 + 126 * 32, sizeof(pad));
  EXPECT(pad == 0);
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_COMMITTED); /* it fits: no switch */
  EXPECT(slots[1].head == WEFT_HEAD_INITIAL && slots[1].frontier == 0);
}

static void overwrite_mode_publishes_the_frontier(void) {
  set_up(WEFT_RING_OVERWRITE);
  fill(4);
  EXPECT(slots[1].frontier == 0);
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].frontier == 1u << SUBBUF_SHIFT);
}

/* Writes a record of 32 bytes at the place that weft_look saw. */
static enum weft_write_result at(const struct weft_place* place) {
  const uint64_t payload[2] = {3, 4};
  const struct weft_piece piece = {payload, sizeof(payload)};
  const struct weft_record_parts parts = {weft_record_word0(32, 9), weft_record_increment(32),
                                          &piece, 1};
  return weft_write_pieces_at(rseq, 24, &ring, &parts, place);
}

static void a_time_is_recorded_where_it_was_read_for(void) {
  set_up(WEFT_RING_OVERWRITE);
  struct weft_place place = {0};
  EXPECT(weft_look(rseq, 24, &ring, &place) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].head == WEFT_HEAD_INITIAL);
  place.time = 1234567;
  EXPECT(at(&place) == WEFT_WRITE_COMMITTED);
  struct weft_record r;
  memcpy(&r, data(1) + 32, sizeof(r));
  EXPECT(r.size == 32 && r.event == 9 && r.cpu == 5 && r.time == 1234567);
  EXPECT(slots[1].head == ((1ull << 32) | (32 + 32)));
  /* Another record was written. */
  EXPECT(at(&place) == WEFT_WRITE_MOVED);
  /* The other slot looks the same. */
  set_up(WEFT_RING_OVERWRITE);
  EXPECT(weft_look(rseq, 24, &ring, &place) == WEFT_WRITE_COMMITTED);
  rseq[6] = 0;
  EXPECT(at(&place) == WEFT_WRITE_MOVED);
  rseq[6] = 1;
  /* The head is equal, but a round later. */
  fill(4);
  EXPECT(weft_switch_subbuf(rseq, 24, &ring, 32) == WEFT_WRITE_COMMITTED);
  EXPECT(slots[1].head == place.head);
  EXPECT(at(&place) == WEFT_WRITE_MOVED);
  EXPECT(slots[1].head == WEFT_HEAD_INITIAL);
  EXPECT(weft_look(rseq, 24, &ring, &place) == WEFT_WRITE_COMMITTED);
  EXPECT(at(&place) == WEFT_WRITE_COMMITTED);
  while (words(0)) {
  }
  EXPECT(weft_look(rseq, 24, &ring, &place) == WEFT_WRITE_COMMITTED);
  EXPECT(at(&place) == WEFT_WRITE_FULL);
  slots[1].closed = 1;
  EXPECT(at(&place) == WEFT_WRITE_CLOSED);
  ring.slots = 0;
  EXPECT(at(&place) == WEFT_WRITE_NO_SLOT);
  EXPECT(weft_look(rseq, 24, &ring, &place) == WEFT_WRITE_NO_SLOT);
}

int main(void) {
  records_are_laid_out_as_ring_h_says();
  words_of_any_number_are_copied_whole();
  the_slot_is_the_cpus_where_there_is_no_mm_cid();
  leaving_stores_nothing();
  discard_mode_waits_for_the_tail();
  overwrite_mode_publishes_the_frontier();
  a_time_is_recorded_where_it_was_read_for();
  printf("writer sections: %u checks passed\n", checks);
  return 0;
}
