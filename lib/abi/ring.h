/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The ring set: shared memory that a traced process (or weft.ko) writes events into and a consumer
 * reads. This header is the published format; lib/ring/ has the code, docs/formats/ring.md a worked
 * example, models/ring.pml the state machine.
 *
 *   one memfd, per (traced process, channel), sealed SHRINK | GROW | SEAL, sparse
 *   +----------------+ 0
 *   | header         |   written once by the creator; descriptions_used grows
 *   +----------------+ slots_offset
 *   | slots          |   slot_count of struct weft_slot; the last one is the atomic slot
 *   +----------------+ descriptions_offset
 *   | descriptions   |   struct weft_description_entry, appended, never changed
 *   +----------------+ data_offset
 *   | ring 0         |   1 << slot_shift bytes each: sub-buffers of 1 << subbuf_shift bytes
 *   | ring 1 ...     |
 *   +----------------+ total_size
 *
 * Terms
 *   slot      one ring with one writer at a time. Which slot: the kernel's concurrency id (mm_cid)
 *             of the thread, else its CPU number; a restartable sequence (rseq) makes the thread
 *             the only writer until the commit store, or starts it again. Threads without rseq all
 *             use the atomic slot, under its lock.
 *   head      one u64, the only word that publishes records:
 *               bits 0..31   offset in the slot's ring where the next record goes
 *               bits 32..63  records committed in the current sub-buffer
 *             The current sub-buffer is offset >> subbuf_shift. A head never stands at the end of a
 *             sub-buffer: at least 8 bytes are free behind it, enough for a pad word.
 *   position  u64 of a reader: sequence of the sub-buffer << subbuf_shift, plus the offset in it.
 *   tail      position up to which the reader has taken everything. Only the reader writes it.
 *   frontier  (overwrite mode) position below which the writer may be storing. Published before the
 *             first such store.
 *
 * The writer [W], in one section, aborted and restarted as a whole (rseq) or alone (lock):
 *   W1  head = slot.head; if closed is not 0, the event is treated as off
 *   W2  in-sub-buffer offset + size (rounded up to 8) < sub-buffer size, else switch, below
 *   W3  time = clock; so that times in a slot never go back
 *   W4  record header and payload are stored behind head, where no reader reads
 *   W5  slot.head = head + size + (1 << 32)        the commit: a store with release order
 *
 * Switching sub-buffers [S], a section of its own; s is the current sub-buffer's sequence, n the
 * number of sub-buffers, B their size:
 *   S1  discard mode:   unless tail >= (s + 2 - n) * B, the ring is full: the event is discarded
 *   S2  overwrite mode: frontier = max(frontier, (s + 2 - n) * B), then a store barrier
 *   S3  pad word 0 at head, if the reader could mistake what lies there for a record (always)
 *   S4  header of sub-buffer s + 1: sequence, records_before
 *   S5  slot.head = offset of sub-buffer s + 1 + sizeof(header), 0 records      the commit
 *
 * A discarded event [D]: one store of slot.discarded[reason] + 1 in a section (atomic slot: atomic
 * add; MISSED: slot.missed). So for every slot, at any moment and after SIGKILL at any instruction:
 *   emitted = committed + sum(discarded), committed = records_before + (head >> 32).
 *
 * The reader [R] trusts nothing; it copies by pread and checks the copy:
 *   R1  head, its sub-buffer's header, head again until the header's sequence is the same before
 *       and after (bounded): then head belongs to that sequence. Acquire order.
 *   R2  copies [position, head) or to the end of an older sub-buffer; size 0 is the pad
 *   R3  overwrite mode: reads frontier after the copy; drops what is below it
 *   R4  records_before of the sub-buffer it enters, minus what it has seen: exactly what was
 *       overwritten
 *   R5  tail = position, after the copy
 * To close a slot: closed = 1, then membarrier(MEMBARRIER_CMD_GLOBAL), milliseconds in which every
 * CPU was seen by the kernel, while a section takes nanoseconds; then, for the atomic slot, its
 * lock seen free. From then on head is final, unless a CPU stood still inside a section all that
 * time: the barrier itself aborts no section (measured; models/README.md). S and D look at closed
 * as W1 does, D also where it counts without the lock (NESTED, CONTENDED), so discarded[] is then
 * final, too.
 *
 * After a kill of the process or of the reader there is nothing to repair, since head is the only
 * word that publishes records. A reader writes its position, and the number of records before it,
 * to a journal together with what it delivered; then it stores tail. A new reader continues at the
 * position in the journal: from tail it could hand out records twice.
 *
 * Extension rules: inside a major version one only appends (header_size, slot_size), feature bits
 * name what a reader must understand; reserved is zero and checked. Little-endian.
 */
#ifndef WEFT_LIB_ABI_RING_H_
#define WEFT_LIB_ABI_RING_H_

#include "event.h"

#define WEFT_RING_MAGIC 0x474e5257u /* "WRNG" */
#define WEFT_RING_MAJOR 1u
#define WEFT_RING_MINOR 1u /* 1: records beyond 64 KiB, where the channel has LARGE_RECORDS */

#define WEFT_RING_MAX_SLOTS 4097u /* 4096 CPUs and the atomic slot */
#define WEFT_RING_MIN_SUBBUF_SHIFT 12u
#define WEFT_RING_MAX_SLOT_SHIFT 31u   /* offsets are 32 bits, and below 1 << 31 */
#define WEFT_RING_MIN_SUBBUFS_SHIFT 1u /* at least two sub-buffers */
#define WEFT_RING_MAX_SUBBUFS_SHIFT 8u
/* A record with its header, contexts and payload is at most a quarter of a sub-buffer, and at
 * most so large: a CTF packet with it is one that relays take (WEFT_STREAM_MAX_PACKET_BYTES of
 * stream.h). */
#define WEFT_RECORD_MAX_BYTES (1920u * 1024u)
/* The largest record that readers of version 1.0 take. A writer keeps to it unless the channel has
 * WEFT_CHANNEL_LARGE_RECORDS (control.h), by which the agent says that its reader is not one of
 * them. */
#define WEFT_RECORD_MAX_BYTES_1_0 (64u * 1024u)
/* Rings of at least this size may begin at multiples of it, so that huge pages can hold them. No
   reader depends on this. */
#define WEFT_HUGE_PAGE_BYTES (2ull << 20)

enum weft_ring_mode { WEFT_RING_DISCARD = 0, WEFT_RING_OVERWRITE = 1 };

enum weft_clock_id {
  WEFT_CLOCK_TSC = 1,       /* x86 rdtsc, arm64 cntvct_el0 */
  WEFT_CLOCK_MONOTONIC = 2, /* CLOCK_MONOTONIC, ns, of the host: outside of any time namespace */
};

/* The table of reasons to discard an event: WEFT_DISCARD_SYMBOL is the id, the name stands in
 * counts, statuses and metrics.
 *   FULL       no free sub-buffer
 *   MEMORY     the container's budget for rings is used up
 *   NESTED     a signal handler interrupted its own thread in the atomic slot
 *   TOO_LARGE  over a quarter of a sub-buffer, or WEFT_RECORD_MAX_BYTES
 *   CONTENDED  a lock was not had in bounded time, or no decision could be made
 *   MISSED     weft.ko: the kernel did not deliver a probe's hit */
#define WEFT_DISCARD_TABLE(X)  \
  X(FULL, 0, "full")           \
  X(MEMORY, 1, "memory")       \
  X(NESTED, 2, "nested")       \
  X(TOO_LARGE, 3, "too_large") \
  X(CONTENDED, 4, "contended") \
  X(MISSED, 5, "missed")

#define WEFT_DISCARD_ENUMERATOR_(symbol, id, name) WEFT_DISCARD_##symbol = id,
enum weft_discard_reason {
  WEFT_DISCARD_TABLE(WEFT_DISCARD_ENUMERATOR_) WEFT_DISCARD_REASONS /* how many there are */
};
#undef WEFT_DISCARD_ENUMERATOR_

struct weft_ring_header {
  uint32_t magic;
  uint16_t major;
  uint16_t minor;
  uint32_t header_size; /* sizeof(struct weft_ring_header) of the writer */
  uint32_t features;    /* none yet: 0 */
  uint64_t total_size;
  uint64_t slots_offset;
  uint64_t descriptions_offset;
  uint64_t descriptions_size; /* 0: the ring set only counts what is discarded */
  uint64_t data_offset;
  uint32_t slot_count; /* with the atomic slot */
  uint32_t slot_size;  /* bytes from slot to slot: sizeof(struct weft_slot) of the writer */
  uint32_t slot_shift;
  uint32_t subbuf_shift;
  uint32_t mode;       /* enum weft_ring_mode */
  uint32_t clock;      /* enum weft_clock_id */
  uint64_t channel_id; /* of lib/abi/control.h */
  uint64_t instance;   /* random: the same memory found twice is one ring set */
  uint32_t pid;        /* as the process sees itself; a claim, never an identity */
  uint32_t reserved0;
  uint64_t created; /* clock: no event of this ring set is older, none that was discarded either */
  /* Written after creation: */
  uint64_t descriptions_used; /* bytes; the commit of an entry, release */
  uint64_t reserved[4];
};
WEFT_ABI_ASSERT(sizeof(struct weft_ring_header) == 152, "ring header layout");

/* Bytes of descriptions that weft_ring_set_bytes counts; most processes have no more. */
#define WEFT_RING_USUAL_DESCRIPTIONS 8192u
#define WEFT_RING_PAGE_SHIFT 12u

/* Returns the bytes of memory that a ring set can use: its rings, and the pages in front of them. A
 * ring set without room for descriptions takes no records: only its first pages are ever used. */
static inline uint64_t weft_ring_set_bytes(uint64_t descriptions_offset, uint64_t descriptions_size,
                                           uint32_t slot_count, uint32_t slot_shift) {
  const uint64_t page = 1u << WEFT_RING_PAGE_SHIFT;
  const uint64_t front = descriptions_offset + WEFT_RING_USUAL_DESCRIPTIONS;
  if (descriptions_size == 0) return (descriptions_offset + page - 1) & -page;
  return ((front + page - 1) & -page) + ((uint64_t)slot_count << slot_shift);
}

struct weft_slot {
  uint64_t head;   /* writer */
  uint32_t closed; /* agent or consumer: 1, never back to 0 */
  uint32_t reserved0;
  uint64_t discarded[WEFT_DISCARD_MISSED]; /* writer; the later reason stands below */
  uint64_t frontier;                       /* writer */
  uint64_t tail;                           /* reader */
  uint64_t lock;                           /* atomic slot: the owner's thread pointer, 0 free */
  uint64_t last_time;                      /* atomic slot: its owner's */
  uint64_t missed;                         /* writer: discarded, WEFT_DISCARD_MISSED */
  uint64_t reserved[4];
};
WEFT_ABI_ASSERT(sizeof(struct weft_slot) == 128, "a slot is two cache lines");

/* The header at the start of every sub-buffer. All zero (fresh memory) is valid for the first
 * one. */
struct weft_subbuf_header {
  uint64_t sequence;       /* of this sub-buffer in this slot, from 0 */
  uint64_t records_before; /* committed in this slot before this sub-buffer */
  uint64_t reserved[2];
};
WEFT_ABI_ASSERT(sizeof(struct weft_subbuf_header) == 32, "sub-buffer header layout");

/* The head of a fresh slot. It points behind the header of sub-buffer 0. */
#define WEFT_HEAD_INITIAL ((uint64_t)sizeof(struct weft_subbuf_header))

/* The header of a record, at a multiple of 8. The channel's contexts (lib/abi/context.h) follow,
 * then the payload (lib/abi/event.h). The next record is at size rounded up to 8. size 0: the
 * sub-buffer has no more records. */
struct weft_record {
  uint32_t size;  /* bytes, this header included */
  uint16_t event; /* id in this ring set's descriptions */
  uint16_t cpu;
  uint64_t time; /* clock */
};
WEFT_ABI_ASSERT(sizeof(struct weft_record) == 16, "record header layout");

/* Followed by the struct weft_event_desc and its bytes; the next entry is at size rounded up to
   8. */
struct weft_description_entry {
  uint32_t size; /* bytes, this header included */
  uint16_t event;
  uint16_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_description_entry) == 8, "description entry layout");

/* Returns NULL if there is no such reason. */
static inline const char* weft_discard_name(uint32_t reason) {
#define WEFT_DISCARD_NAME_(symbol, id, name) \
  case WEFT_DISCARD_##symbol:                \
    return name;
  switch ((enum weft_discard_reason)reason) {
    WEFT_DISCARD_TABLE(WEFT_DISCARD_NAME_)
    case WEFT_DISCARD_REASONS:
      break;
  }
#undef WEFT_DISCARD_NAME_
  return 0; /* NOLINT(modernize-use-nullptr): C as well */
}

#endif /* WEFT_LIB_ABI_RING_H_ */
