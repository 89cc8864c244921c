/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The writer's view of a ring set, and the results of a write. Freestanding C.
 *
 * libweft.so calls it in the traced program, on any thread, in signal handlers, and in fork and
 * vfork children. The steps W, S and D of lib/abi/ring.h are in writer_x86_64.h and
 * writer_aarch64.h (a restartable sequence each) and in atomic_slot.h (under a lock, for threads
 * without rseq).
 *
 * Invariants
 *  1. Nothing between a section's start and the commit store is visible to a reader.
 *  2. A section reads `slots` or its `count` inside itself: a signal handler that interrupts it may
 *     fork, and the child finds 0 there (the view and the table lie in MADV_WIPEONFORK pages).
 *  3. When a ring set appears, `slots` is stored after everything but the table's `count`. `count`
 *     comes last: at once, or when sections are safe. Nothing else changes after that; both are 0
 *     again when the ring set goes.
 */
#ifndef WEFT_LIB_RING_WRITER_H_
#define WEFT_LIB_RING_WRITER_H_

#include <stdbool.h>

#include "../abi/ring.h"

/* The word before each section's abort handler, with which a thread's area is registered: the
 * kernel kills a thread if the two differ. Each architecture has one value, that of glibc (RSEQ_SIG
 * of <sys/rseq.h>). */
#if defined(__aarch64__)
#define WEFT_RSEQ_SIGNATURE 0xd428bc00
#else
#define WEFT_RSEQ_SIGNATURE 0x53053053
#endif
#define WEFT_RSEQ_TEXT_OF(value) #value
#define WEFT_RSEQ_TEXT(value) WEFT_RSEQ_TEXT_OF(value)

/* Offset of a slot's number in struct rseq: the kernel's concurrency id or, before Linux 6.3, the
   CPU. */
#define WEFT_RSEQ_MM_CID_OFFSET 24
#define WEFT_RSEQ_CPU_ID_OFFSET 4

/* The place where a slot is mapped. */
struct weft_writer_slot {
  struct weft_slot* shared;
  uint8_t* data; /* its ring */
};

struct weft_writer_slots {
  uint32_t count; /* slots that threads with rseq may use: 0 while none may */
  uint32_t reserved[3];
  struct weft_writer_slot slot[];
};

struct weft_writer_ring {
  struct weft_writer_slots* slots; /* 0: this process has no ring set for the channel */
  uint32_t atomic_slot;            /* index of slots->slot */
  uint32_t subbuf_mask;            /* bytes of a sub-buffer - 1 */
  uint32_t subbuf_shift;
  uint32_t slot_mask; /* bytes of a slot's ring - 1 */
  uint32_t subbufs;
  uint32_t mode; /* enum weft_ring_mode */
  uint32_t clock;
  uint32_t max_record;  /* bytes of a record; 0: the ring set only counts discards. libweft.so's */
  uint64_t stuck_owner; /* it did not leave the atomic slot's lock in bounded time, 0: none */
};

/* Returns the slot of threads without rseq; `ring` has a ring set. */
static inline struct weft_slot* weft_atomic_slot(const struct weft_writer_ring* ring) {
  return ring->slots->slot[ring->atomic_slot].shared;
}

enum weft_write_result {
  WEFT_WRITE_COMMITTED = 0,
  WEFT_WRITE_NO_SLOT = 1, /* no ring set here, or no rseq in this thread, or too many aborts */
  WEFT_WRITE_FULL = 2,    /* the current sub-buffer has no room: switch, then again */
  WEFT_WRITE_CLOSED = 3,
  WEFT_WRITE_MOVED = 4, /* another writer wrote, or this thread's slot is another one: look again */
};

/* The place of a slot's next record, and a time that was read after that place was seen: for clocks
 * that a section cannot read. No two positions of a slot's head have both `head` and `sequence`. */
struct weft_place {
  uint64_t slot; /* address */
  uint64_t head;
  uint64_t sequence; /* of the sub-buffer that head is in */
  uint64_t time;
};

/* One piece of a record behind its header. */
struct weft_piece {
  const void* data;
  uint64_t size; /* bytes */
};

struct weft_record_parts {
  uint64_t word0;     /* size and event of struct weft_record; the writer adds the CPU */
  uint64_t increment; /* rounded size + (1 << 32): what head grows by */
  const struct weft_piece* pieces; /* they make exactly size - sizeof(struct weft_record) bytes */
  uint64_t piece_count;
};

/* What the records of an event share if they are equally long and lie in one buffer. */
struct weft_record_class {
  uint64_t word0;     /* as in struct weft_record_parts */
  uint64_t increment; /* the same */
  const struct weft_writer_ring* ring;
  const struct weft_writer_slots* slots; /* what ring->slots is, or will be */
  uint32_t boundary; /* weft_record_boundary(ring's sub-buffers), also before there are any */
};

/* Returns a mask that a section tests at once: bits that differ between offsets in two sub-buffers
 * and not between those in one, and the bit that no offset has, for weft_slot.closed. */
static inline uint32_t weft_record_boundary(uint32_t subbuf_shift) {
  return ~((1u << subbuf_shift) - 1) | 1u;
}

static inline uint64_t weft_record_word0(uint32_t size, uint16_t event) {
  return (uint64_t)size | ((uint64_t)event << 32);
}

static inline uint64_t weft_record_increment(uint32_t size) {
  return (((uint64_t)size + 7u) & ~7ull) | (1ull << 32);
}

/* Offsets that the assembly uses. */
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_slot, data) == 8, "assembly");
WEFT_ABI_ASSERT(sizeof(struct weft_writer_slot) == 1 << 4, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_slots, count) == 0, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_slots, slot) == 16, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_ring, subbuf_mask) == 12, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_ring, subbuf_shift) == 16, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_ring, slot_mask) == 20, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_ring, subbufs) == 24, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_writer_ring, mode) == 28, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_slot, closed) == 8, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_slot, discarded) == 16, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_slot, frontier) == 56, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_slot, tail) == 64, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_record_parts, increment) == 8, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_record_parts, pieces) == 16, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_record_parts, piece_count) == 24, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_place, slot) == 0, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_place, head) == 8, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_place, sequence) == 16, "assembly");
WEFT_ABI_ASSERT(__builtin_offsetof(struct weft_place, time) == 24, "assembly");

#endif /* WEFT_LIB_RING_WRITER_H_ */
