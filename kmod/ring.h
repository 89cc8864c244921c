/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A channel's rings, one per possible CPU, and their writer: steps W, S and D of lib/abi/ring.h
 * for writers that interrupt each other. docs/adr/0017 has the reasons.
 *
 * Writers are probes, in any context of the ring's own CPU, preemption off. They nest like function
 * calls: a writer that interrupts another is finished before that one goes on. Per CPU:
 *
 *   reserve  one word, moved by a local cmpxchg: bits 0..35 the position where the next record goes
 *            (modulo 2^36), bits 36..63 the records reserved so far (modulo 2^28). The
 *            writer that moves it owns what lies between, and, if it enters a sub-buffer, that
 *            sub-buffer's header. It needs only the word and `base` for this, never a value
 *            that an interrupted writer may not have stored yet.
 *   nesting  number of writers at work. The outermost one publishes head, for all of them, when it
 *            is done, and then looks whether another writer came between its look and its end.
 *   base     position and count, whole, as of the last sub-buffer that was published; only the
 *            outermost writer stores it. Reservations in flight are at or behind it.
 *
 * Invariants
 *  1. Nothing is in flight below base: a writer never enters a sub-buffer whose place is that of
 *     base's or a later one that is not published (the event is discarded: FULL).
 *  2. reserve is at most one ring ahead of base: at most 2^31 bytes and 2^27 records, so that its
 *     parts unwrap against base without doubt.
 *  3. Times in a slot never go back: the clock is read between the load of reserve and its cmpxchg.
 *  4. The module reads only `tail` and `closed` of the shared page. Wrong values there can make a
 *     ring overwrite records that its reader did not take, or stand still, and nothing else.
 *  5. Head's sub-buffer is base's or a later one: it is published before base moves on. A writer
 *     therefore never enters the sub-buffer of the head that a reader sees.
 *  6. The reader never sees values that grow (frontier, discarded) fall, not even for a moment.
 *
 * models/kring.pml has these steps, and shows the mistake that appears without each.
 */
#ifndef WEFT_KMOD_RING_H
#define WEFT_KMOD_RING_H

#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/wait.h>
#include <asm/local.h>

#include "clock.h"
#include "lib/abi/kernel.h"

#ifndef CONFIG_64BIT
#error "weft.ko needs a 64-bit kernel: its reservation word is one local_t"
#endif

#define WEFT_RESERVE_POSITION_BITS 36
#define WEFT_RESERVE_POSITION_MASK ((1ull << WEFT_RESERVE_POSITION_BITS) - 1)
#define WEFT_RESERVE_COUNT_MASK	   ((1ull << (64 - WEFT_RESERVE_POSITION_BITS)) - 1)
#define WEFT_RESERVE_ONE	   (1ull << WEFT_RESERVE_POSITION_BITS)

struct weft_ring_cpu {
	local_t reserve;
	u8 *data;		/* 1 << slot_shift bytes */
	struct weft_slot *slot; /* in the shared page: foreign */
	u64 base_position;
	u64 base_before; /* records before the sub-buffer of base_position */
	u32 nesting;
	u64 cpu_bits;	     /* the CPU, shifted to its place in a record's first word */
	local_t last_time;   /* read from the clock MONOTONIC, which may step back */
	local_t frontier;    /* overwrite mode */
	u64 *records_before; /* by index of the sub-buffer; known to the outermost writer */
	local_t discarded[WEFT_DISCARD_REASONS];
	local_t switches;
	struct irq_work wake;
	struct weft_ring *ring;
} ____cacheline_aligned;

struct weft_ring {
	struct weft_ring_cpu __percpu *cpus;
	u32 subbuf_mask; /* 0: the ring stopped */
	u32 slot_mask;
	u32 clock;	/* enum weft_clock_id */
	u32 max_record; /* bytes */
	u32 subbuf_shift;
	u32 subbufs;
	u32 mode; /* enum weft_ring_mode */
	u32 slot_shift;
	u8 *shared;    /* [0, data_offset) */
	u32 described; /* bytes of descriptions */
	u64 slots_offset, descriptions_offset, data_offset, total_size;
	u64 memory;  /* what this ring has added to memory_of_rings (ring.c) */
	u32 stopped; /* enum weft_kernel_stop */
	/* Called at each contradiction, in any context; may be NULL. Set by the owner. */
	void (*contradicted)(struct weft_ring *ring, enum weft_kernel_stop why);
	wait_queue_head_t readers;
	u8 *atomic_page; /* zeros: what the unused atomic slot's data is, mapped */
};

/* Initialises a ring, which is all zeros before, from checked geometry. Returns 0, or -ENOMEM:
 * there is no memory, or all rings together would exceed their part of it (limits.h). */
int weft_ring_init(struct weft_ring *ring, const struct weft_kernel_channel *channel);
/* No writer may be left. */
void weft_ring_destroy(struct weft_ring *ring);
/* Returns the number of sub-buffers filled so far, on all CPUs. */
u64 weft_ring_switches(const struct weft_ring *ring);
/* Appends a description. 0, -ENOSPC. The caller has the lock of control (session.h). */
int weft_ring_describe(struct weft_ring *ring, u16 event, const void *desc, u32 size);

/* Stops the ring because its words or its writer's contradict each other: nothing is written any
 * more. May run in any context. It costs the fast path nothing: without a sub-buffer's mask no
 * record has room, and the slow path says no. */
void weft_ring_stop(struct weft_ring *ring, enum weft_kernel_stop why);

void weft_ring_publish_slow(struct weft_ring *ring, struct weft_ring_cpu *c, u64 word);
void *weft_ring_reserve_slow(struct weft_ring *ring, struct weft_ring_cpu *c, u64 word0,
			     u64 rounded);
/* Returns whether a record of `bytes` on this CPU would be discarded because there is no room.
 * Preemption is off. */
bool weft_ring_is_full(struct weft_ring *ring, u32 bytes);
/* D: counts events that are not recorded. Preemption is off. Does nothing if the slot is closed. */
void weft_ring_discard_many(struct weft_ring *ring, enum weft_discard_reason reason, u64 events);

static inline void weft_ring_discard(struct weft_ring *ring, enum weft_discard_reason reason)
{
	weft_ring_discard_many(ring, reason, 1);
}

/* Raises a time to the last one that was given out. last_time is raised before the record is
 * reserved, so a writer that reserves behind it sees it. */
static __always_inline u64 weft_ring_clamp(struct weft_ring_cpu *c, u64 time)
{
	long last;

	do {
		last = local_read(&c->last_time);
		if (unlikely(time <= (u64)last))
			return last;
	} while (unlikely(local_cmpxchg(&c->last_time, last, time) != last));
	return time;
}

static __always_inline u64 weft_ring_time(const struct weft_ring *ring, struct weft_ring_cpu *c)
{
	if (likely(ring->clock == WEFT_CLOCK_TSC))
		return weft_clock_tsc();
	return weft_ring_clamp(c, weft_clock_monotonic());
}

/* Returns the bytes that a record of `size` bytes, header included, takes in the ring. */
static __always_inline u64 weft_ring_round(u32 size)
{
	return ALIGN((u64)size, 8);
}

/* W4's header. */
static __always_inline void *weft_ring_begin(const struct weft_ring_cpu *c, void *at, u64 word0,
					     u64 time)
{
	u64 *record = at;

	record[0] = word0 | c->cpu_bits;
	record[1] = time;
	return record + 2;
}

/*
 * W1 to W3. Reserves room for a record of `size` bytes (with its header; at most max_record).
 * Returns its body, which the caller fills before weft_ring_commit; NULL: the slot is closed, or
 * the event was counted as discarded. `word0` is size | event << 32. Preemption is off from before
 * this call until after the commit.
 */
static __always_inline void *weft_ring_reserve(struct weft_ring *ring, struct weft_ring_cpu *c,
					       u64 word0, u64 rounded)
{
	u64 word, time;
	u32 mask;

	if (unlikely(READ_ONCE(c->slot->closed)))
		return NULL;
	c->nesting++;
	barrier(); /* N1: from here on, other writers leave the publishing to this one */
	do {
		word = local_read(&c->reserve);
		mask = READ_ONCE(ring->subbuf_mask); /* once: it may become 0 (weft_ring_stop) */
		if (unlikely((word & mask) + rounded > mask))
			return weft_ring_reserve_slow(ring, c, word0, rounded);
		time = weft_ring_time(ring, c);
	} while (unlikely(local_cmpxchg(&c->reserve, word, word + rounded + WEFT_RESERVE_ONE) !=
			  (long)word));
	return weft_ring_begin(c, c->data + (word & ring->slot_mask), word0, time);
}

/* Publishes all that is below `word`; `before` records lie before its sub-buffer. */
static __always_inline void weft_ring_store_head(const struct weft_ring *ring,
						 struct weft_ring_cpu *c, u64 word, u64 before)
{
	const u64 records =
		((word >> WEFT_RESERVE_POSITION_BITS) - before) & WEFT_RESERVE_COUNT_MASK;

	/* P: all records up to head before head; pairs with the reader's acquire (R1). */
	smp_store_release(&c->slot->head, (word & ring->slot_mask) | records << 32);
}

/* W5. Only the outermost writer publishes, for all. */
static __always_inline void weft_ring_commit(struct weft_ring *ring, struct weft_ring_cpu *c)
{
	u64 word;

	barrier(); /* N2: the record's stores before nesting falls */
	if (unlikely(c->nesting > 1)) {
		c->nesting--;
		return;
	}
	for (;;) {
		word = local_read(&c->reserve);
		if (unlikely((word ^ c->base_position) & WEFT_RESERVE_POSITION_MASK &
			     ~(u64)ring->subbuf_mask))
			weft_ring_publish_slow(ring, c, word);
		else
			weft_ring_store_head(ring, c, word, c->base_before);
		barrier();
		c->nesting = 0;
		barrier(); /* N3: no writer may come between this store and the look behind it
			      * unseen */
		if (likely((u64)local_read(&c->reserve) == word))
			return;
		c->nesting = 1;
		barrier();
	}
}

#endif /* WEFT_KMOD_RING_H */
