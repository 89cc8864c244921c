// SPDX-License-Identifier: GPL-2.0-only
/* The ring's slow paths and its making: ring.h. */
#include "ring.h"

#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/topology.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "limits.h"
#include "lib/abi/kernel.h"

/* Sum of weft_ring.memory of all rings. */
static atomic64_t memory_of_rings = ATOMIC64_INIT(0);

/* Returns the whole position of a reservation word, which is at most a ring ahead of base
 * (invariant 2). */
static u64 whole_position(const struct weft_ring_cpu *c, u64 word)
{
	const u64 base = READ_ONCE(c->base_position);

	return base + ((word - base) & WEFT_RESERVE_POSITION_MASK);
}

static u64 whole_count(const struct weft_ring_cpu *c, u64 word)
{
	const u64 base = READ_ONCE(c->base_before);

	return base + (((word >> WEFT_RESERVE_POSITION_BITS) - base) & WEFT_RESERVE_COUNT_MASK);
}

void weft_ring_stop(struct weft_ring *ring, enum weft_kernel_stop why)
{
	cmpxchg(&ring->stopped, WEFT_KERNEL_RUNS, why);
	WRITE_ONCE(ring->subbuf_mask, 0);
	if (ring->contradicted)
		ring->contradicted(ring, why);
}

/* Are the words of this CPU possible ones? Returns why not. `position` and `count` are those of a
 * reservation. */
static enum weft_kernel_stop check(const struct weft_ring *ring, const struct weft_ring_cpu *c,
				   u64 position, u64 count)
{
	if (unlikely(position - READ_ONCE(c->base_position) > ring->slot_mask))
		return WEFT_KERNEL_STOP_POSITION;
	if (unlikely(count - READ_ONCE(c->base_before) >
		     (ring->slot_mask + 1ull) / sizeof(struct weft_record)))
		return WEFT_KERNEL_STOP_COUNT;
	if (unlikely(!c->nesting || c->nesting > WEFT_MAX_NESTING))
		return WEFT_KERNEL_STOP_NESTING;
	return WEFT_KERNEL_RUNS;
}

/* The outermost writer found that reserve is in another sub-buffer than base: publishes head, then
 * moves base on (invariant 5). All that entered sub-buffers meanwhile are done, so records_before
 * holds. A writer that interrupts between the stores unwraps each of its parts against the old or
 * the new base: both are right. It wakes readers here, after head is stored, since they may look at
 * once. It publishes a ring that stopped, too, if this CPU's words are right. */
void weft_ring_publish_slow(struct weft_ring *ring, struct weft_ring_cpu *c, u64 word)
{
	const u64 position = whole_position(c, word), count = whole_count(c, word);
	const u32 index = (position >> ring->subbuf_shift) & (ring->subbufs - 1);
	enum weft_kernel_stop why = check(ring, c, position, count);
	u64 before;

	if (!why && c->records_before[index] - c->base_before > count - c->base_before)
		why = WEFT_KERNEL_STOP_COUNT;
	if (unlikely(why)) {
		if (READ_ONCE(ring->stopped))
			return;
		weft_ring_stop(ring, why);
		weft_ring_discard(ring, WEFT_DISCARD_CONTENDED); /* our own */
		return;
	}
	before = c->records_before[index];
	weft_ring_store_head(ring, c, word, before);
	barrier(); /* H: head before base (invariant 5) */
	WRITE_ONCE(c->base_before, before);
	WRITE_ONCE(c->base_position, position);
	if (wq_has_sleeper(&ring->readers))
		irq_work_queue(&c->wake);
}

/* Stores a word of this CPU's that only grows in the place where the reader sees it. `shown` is
 * looked at before `own`: a writer that interrupts behind that look and shows more makes the
 * cmpxchg fail, so that the reader never sees less again (invariant 6). The reader may write there
 * as well, so the attempts are limited: after the last one the count is stored whatever stands
 * there. */
static void show(u64 *shown, const local_t *own)
{
	int tries;

	for (tries = 0; tries < WEFT_SHOW_TRIES; tries++) {
		const long old = READ_ONCE(*shown);
		const long grown = local_read(own);

		if (old == grown || local_cmpxchg((local_t *)shown, old, grown) == old)
			return;
	}
	WRITE_ONCE(*shown, local_read(own));
}

/* S2: frontier only grows. If it is high enough already, a writer that we interrupted may have
 * raised it and not shown it yet. */
static void raise_frontier(struct weft_ring_cpu *c, u64 frontier)
{
	long old;

	do {
		old = local_read(&c->frontier);
	} while ((u64)old < frontier && local_cmpxchg(&c->frontier, old, frontier) != old);
	show(&c->slot->frontier, &c->frontier);
	smp_wmb(); /* F: frontier before the first store into the old sub-buffer (R3) */
}

/* May the writer go on into the sub-buffer behind the one of `position`? */
static bool may_enter_next(const struct weft_ring *ring, struct weft_ring_cpu *c, u64 position)
{
	const u64 sequence = position >> ring->subbuf_shift;
	const u64 base = READ_ONCE(c->base_position) >> ring->subbuf_shift;
	u64 needed;

	if (sequence + 1 - base >= ring->subbufs)
		return false; /* invariant 1 */
	if (sequence + 2 <= ring->subbufs)
		return true;
	needed = (sequence + 2 - ring->subbufs) << ring->subbuf_shift;
	if (ring->mode == WEFT_RING_OVERWRITE) {
		raise_frontier(c, needed);
		return true;
	}
	/* T: loads tail before our stores; pairs with the reader's store of tail (R5) */
	return smp_load_acquire(&c->slot->tail) >= needed;
}

/* Takes steps S3 and S4, as the writer that moved from `word` into the sub-buffer at `position`. */
static void begin_subbuf(const struct weft_ring *ring, struct weft_ring_cpu *c, u64 word,
			 u64 position, u64 count)
{
	struct weft_subbuf_header *header = (void *)(c->data + (position & ring->slot_mask));

	*(u64 *)(c->data + (word & ring->slot_mask)) = 0;
	header->sequence = position >> ring->subbuf_shift;
	header->records_before = count;
	header->reserved[0] = 0;
	header->reserved[1] = 0;
	c->records_before[header->sequence & (ring->subbufs - 1)] = count;
	local_inc(&c->switches);
}

/* False for a ring that stopped before, and for one that this check stops. */
static bool may_write(struct weft_ring *ring, const struct weft_ring_cpu *c, u64 position,
		      u64 count)
{
	enum weft_kernel_stop why;

	if (READ_ONCE(ring->stopped))
		return false;
	why = check(ring, c, position, count);
	if (likely(!why))
		return true;
	weft_ring_stop(ring, why);
	return false;
}

/* The slow part of weft_ring_reserve: the sub-buffer has no room. `nesting` counts the caller
 * already. */
void *weft_ring_reserve_slow(struct weft_ring *ring, struct weft_ring_cpu *c, u64 word0,
			     u64 rounded)
{
	u64 word, next, position, count, time;

	for (;;) {
		const u32 mask = READ_ONCE(ring->subbuf_mask);

		word = local_read(&c->reserve);
		if ((word & mask) + rounded <= mask) {
			time = weft_ring_time(ring, c);
			if (local_cmpxchg(&c->reserve, word, word + rounded + WEFT_RESERVE_ONE) !=
			    (long)word)
				continue;
			return weft_ring_begin(c, c->data + (word & ring->slot_mask), word0, time);
		}
		position = whole_position(c, word);
		count = whole_count(c, word);
		if (!may_write(ring, c, position, count) || !may_enter_next(ring, c, position)) {
			weft_ring_discard(ring, READ_ONCE(ring->stopped) ? WEFT_DISCARD_CONTENDED
									 : WEFT_DISCARD_FULL);
			weft_ring_commit(ring, c);
			return NULL;
		}
		position = ((position >> ring->subbuf_shift) + 1) << ring->subbuf_shift;
		next = position + sizeof(struct weft_subbuf_header);
		time = weft_ring_time(ring, c);
		if (local_cmpxchg(&c->reserve, word,
				  ((next + rounded) & WEFT_RESERVE_POSITION_MASK) |
					  (count + 1) << WEFT_RESERVE_POSITION_BITS) == (long)word)
			break;
	}
	begin_subbuf(ring, c, word, position, count);
	return weft_ring_begin(c, c->data + (next & ring->slot_mask), word0, time);
}

bool weft_ring_is_full(struct weft_ring *ring, u32 bytes)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	const u64 word = local_read(&c->reserve);

	if (ring->mode == WEFT_RING_OVERWRITE || READ_ONCE(c->slot->closed))
		return false;
	bytes = min(bytes, ring->max_record); /* what is larger is discarded for that */
	return (word & ring->subbuf_mask) + bytes > ring->subbuf_mask &&
	       !may_enter_next(ring, c, whole_position(c, word));
}

void weft_ring_discard_many(struct weft_ring *ring, enum weft_discard_reason reason, u64 events)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	struct weft_slot *slot = c->slot;
	u64 *shown = reason == WEFT_DISCARD_MISSED ? &slot->missed : &slot->discarded[reason];

	if (READ_ONCE(slot->closed))
		return;
	local_add(events, &c->discarded[reason]);
	show(shown, &c->discarded[reason]);
}

static void wake_readers(struct irq_work *work)
{
	struct weft_ring_cpu *c = container_of(work, struct weft_ring_cpu, wake);

	wake_up_interruptible(&c->ring->readers);
}

u64 weft_ring_switches(const struct weft_ring *ring)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu (cpu)
		sum += local_read(&per_cpu_ptr(ring->cpus, cpu)->switches);
	return sum;
}

int weft_ring_describe(struct weft_ring *ring, u16 event, const void *desc, u32 size)
{
	struct weft_ring_header *header = (void *)ring->shared;
	struct weft_description_entry entry = {.size = sizeof(entry) + size, .event = event};
	u8 *at = ring->shared + ring->descriptions_offset + ring->described;

	if (ALIGN(entry.size, 8) > WEFT_DESCRIPTIONS_BYTES - ring->described)
		return -ENOSPC;
	memcpy(at, &entry, sizeof(entry));
	memcpy(at + sizeof(entry), desc, size);
	ring->described += ALIGN(entry.size, 8);
	/* the entry must be visible before the word that announces it */
	smp_store_release(&header->descriptions_used, ring->described);
	return 0;
}

static void write_header(const struct weft_ring *ring, const struct weft_kernel_channel *channel)
{
	struct weft_ring_header *header = (void *)ring->shared;

	*header = (struct weft_ring_header){
		.magic = WEFT_RING_MAGIC,
		.major = WEFT_RING_MAJOR,
		.minor = WEFT_RING_MINOR,
		.header_size = sizeof(*header),
		.total_size = ring->total_size,
		.slots_offset = ring->slots_offset,
		.descriptions_offset = ring->descriptions_offset,
		.descriptions_size = WEFT_DESCRIPTIONS_BYTES,
		.data_offset = ring->data_offset,
		.slot_count = nr_cpu_ids + 1,
		.slot_size = sizeof(struct weft_slot),
		.slot_shift = ring->slot_shift,
		.subbuf_shift = ring->subbuf_shift,
		.mode = ring->mode,
		.clock = ring->clock,
		.channel_id = channel->channel_id,
	};
	get_random_bytes(&header->instance, sizeof(header->instance));
	header->created = ring->clock == WEFT_CLOCK_TSC ? weft_clock_tsc() : weft_clock_monotonic();
}

static int init_cpu(struct weft_ring *ring, int cpu)
{
	struct weft_ring_cpu *c = per_cpu_ptr(ring->cpus, cpu);

	c->ring = ring;
	c->cpu_bits = (u64)cpu << 48;
	c->slot = (struct weft_slot *)(ring->shared + ring->slots_offset) + cpu;
	c->slot->head = WEFT_HEAD_INITIAL;
	local_set(&c->reserve, WEFT_HEAD_INITIAL);
	c->base_position = WEFT_HEAD_INITIAL;
	init_irq_work(&c->wake, wake_readers);
	c->data = vzalloc_node(1ul << ring->slot_shift, cpu_to_node(cpu));
	c->records_before = kcalloc(ring->subbufs, sizeof(u64), GFP_KERNEL);
	return c->data && c->records_before ? 0 : -ENOMEM;
}

/* Counts the ring's memory before it is allocated; weft_ring_destroy takes it off again. */
static int count_memory(struct weft_ring *ring)
{
	const u64 most = ((u64)totalram_pages() << PAGE_SHIFT) / WEFT_RING_MEMORY_DIVISOR;
	const u64 bytes = ring->data_offset + ((u64)num_possible_cpus() << ring->slot_shift);
	s64 before = atomic64_read(&memory_of_rings);

	do {
		if (bytes > most || before > most - bytes)
			return -ENOMEM;
	} while (!atomic64_try_cmpxchg(&memory_of_rings, &before, before + bytes));
	ring->memory = bytes;
	return 0;
}

int weft_ring_init(struct weft_ring *ring, const struct weft_kernel_channel *channel)
{
	int cpu, error;

	init_waitqueue_head(&ring->readers);
	ring->slot_shift = channel->slot_shift;
	ring->subbuf_shift = channel->subbuf_shift;
	ring->slot_mask = (1u << channel->slot_shift) - 1;
	ring->subbuf_mask = (1u << channel->subbuf_shift) - 1;
	ring->subbufs = 1u << (channel->slot_shift - channel->subbuf_shift);
	ring->max_record = min(WEFT_RECORD_MAX_BYTES, 1u << (channel->subbuf_shift - 2));
	ring->mode = channel->mode;
	ring->clock = channel->clock;
	ring->slots_offset = ALIGN(sizeof(struct weft_ring_header), 64);
	ring->descriptions_offset =
		ring->slots_offset + (nr_cpu_ids + 1) * sizeof(struct weft_slot);
	ring->data_offset = PAGE_ALIGN(ring->descriptions_offset + WEFT_DESCRIPTIONS_BYTES);
	ring->total_size = ring->data_offset + ((u64)(nr_cpu_ids + 1) << ring->slot_shift);
	error = count_memory(ring);
	if (error)
		return error;
	ring->shared = vmalloc_user(ring->data_offset);
	ring->atomic_page = (u8 *)get_zeroed_page(GFP_KERNEL);
	ring->cpus = alloc_percpu(struct weft_ring_cpu);
	if (!ring->shared || !ring->atomic_page || !ring->cpus)
		error = -ENOMEM;
	for_each_possible_cpu (cpu) {
		if (error)
			break;
		error = init_cpu(ring, cpu);
	}
	if (error)
		weft_ring_destroy(ring);
	else
		write_header(ring, channel);
	return error;
}

void weft_ring_destroy(struct weft_ring *ring)
{
	int cpu;

	for_each_possible_cpu (cpu) {
		struct weft_ring_cpu *c;

		if (!ring->cpus)
			break;
		c = per_cpu_ptr(ring->cpus, cpu);
		if (c->ring)
			irq_work_sync(&c->wake);
		vfree(c->data);
		kfree(c->records_before);
	}
	free_percpu(ring->cpus);
	free_page((unsigned long)ring->atomic_page);
	vfree(ring->shared);
	atomic64_sub(ring->memory, &memory_of_rings);
}
