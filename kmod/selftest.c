// SPDX-License-Identifier: GPL-2.0-only
/*
 * The self-test: that this build, on this kernel and this machine, does the arithmetic of rings,
 * reads memory, and runs programs as it should. Everything is the module's real code on a ring of
 * its own; what writers that interrupt each other do is done here by calls in that order.
 */
#include "selftest.h"

#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "access.h"
#include "fetch.h"
#include "ring.h"

#define SUBBUF	4096u
#define SUBBUFS 2u
#define BODY	8u
#define RECORD	(sizeof(struct weft_record) + BODY)
#define PER_SUB ((SUBBUF - sizeof(struct weft_subbuf_header) - 8) / RECORD)
#define CONFIRM(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			pr_err("weft: self-test: line %d: %s\n", __LINE__, #condition);            \
			return -EINVAL;                                                            \
		}                                                                                  \
	} while (0)

static void *reserve(struct weft_ring *ring)
{
	return weft_ring_reserve(ring, this_cpu_ptr(ring->cpus), RECORD | 5ull << 32,
				 weft_ring_round(RECORD));
}

static bool write_one(struct weft_ring *ring)
{
	u64 *body = reserve(ring);

	if (!body)
		return false;
	*body = 0x5ef7;
	weft_ring_commit(ring, this_cpu_ptr(ring->cpus));
	return true;
}

/* Brings a ring to where its words are about to wrap around: `records` before the count does, at
 * the beginning of the last sub-buffer before the position does. The whole values. */
static void go_to_the_end(struct weft_ring *ring, u64 records, u64 *position, u64 *count)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);

	*position = 6 * (WEFT_RESERVE_POSITION_MASK + 1) - SUBBUF;
	*count = 3 * (WEFT_RESERVE_COUNT_MASK + 1) - records;
	c->base_position = *position + sizeof(struct weft_subbuf_header);
	c->base_before = *count;
	c->records_before[(*position / SUBBUF) % SUBBUFS] = *count;
	local_set(&c->reserve, (c->base_position & WEFT_RESERVE_POSITION_MASK) |
				       *count << WEFT_RESERVE_POSITION_BITS);
	c->slot->tail = *position;
}

/* Words wrap around, sub-buffers are numbered and counted, and a full ring counts the discarded
 * events. */
static int test_wrap(struct weft_ring *ring)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	struct weft_subbuf_header *header;
	u64 position, count, i;

	go_to_the_end(ring, 3, &position, &count);
	for (i = 0; i < PER_SUB; i++)
		CONFIRM(write_one(ring));
	CONFIRM(c->slot->head >> 32 == PER_SUB);
	for (i = 0; i < PER_SUB; i++)
		CONFIRM(write_one(ring));
	header = (void *)(c->data + (position + SUBBUF) % (SUBBUF * SUBBUFS));
	CONFIRM(header->sequence == position / SUBBUF + 1);
	CONFIRM(header->records_before == count + PER_SUB);
	CONFIRM(c->slot->head >> 32 == PER_SUB);
	CONFIRM(!write_one(ring) && c->slot->discarded[WEFT_DISCARD_FULL] == 1);
	CONFIRM(c->nesting == 0);
	c->slot->tail = position + SUBBUF;
	CONFIRM(write_one(ring) && c->slot->head >> 32 == 1);
	header = (void *)(c->data + position % (SUBBUF * SUBBUFS));
	CONFIRM(header->sequence == position / SUBBUF + 2);
	CONFIRM(header->records_before == count + 2 * PER_SUB);
	c->slot->closed = 1;
	CONFIRM(!write_one(ring) && c->slot->discarded[WEFT_DISCARD_FULL] == 1);
	c->slot->closed = 0;
	return 0;
}

/* Writers that interrupt a writer: their records are published when the outermost one is done, and
 * never before it stored its own. */
static int test_nesting(struct weft_ring *ring)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u64 position, count, head, i;
	u64 *outer;

	go_to_the_end(ring, 1000000, &position, &count);
	CONFIRM(write_one(ring));
	head = c->slot->head;
	outer = reserve(ring);
	CONFIRM(outer);
	*outer = 1;
	/* The reader took everything, and more: so far the ring would be free. */
	c->slot->tail = position + 16 * SUBBUF;
	for (i = 0; i < 2 * PER_SUB - 2; i++)
		CONFIRM(write_one(ring));
	CONFIRM(!write_one(ring)); /* the next sub-buffer would be the outer one's */
	CONFIRM(c->slot->head == head && *outer == 1);
	weft_ring_commit(ring, c);
	CONFIRM(c->slot->head >> 32 == PER_SUB && c->nesting == 0);
	CONFIRM(c->base_before == count + PER_SUB);
	CONFIRM(write_one(ring) && c->slot->head >> 32 == 1);
	return 0;
}

static int test_frontier(struct weft_ring *ring)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u64 position, count, i;

	ring->mode = WEFT_RING_OVERWRITE;
	go_to_the_end(ring, 1, &position, &count);
	for (i = 0; i < 3 * PER_SUB; i++)
		CONFIRM(write_one(ring));
	CONFIRM(c->slot->frontier == position + SUBBUF);
	CONFIRM(write_one(ring) && c->slot->frontier == position + 2 * SUBBUF);
	return 0;
}

/* A record that was begun when a contradiction on another CPU stopped the ring is published. */
static int test_stop_elsewhere(struct weft_ring *ring)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u64 position, count;

	go_to_the_end(ring, 1000, &position, &count);
	CONFIRM(write_one(ring) && reserve(ring));
	weft_ring_stop(ring, WEFT_KERNEL_STOP_IMAGE);
	weft_ring_commit(ring, c);
	CONFIRM(c->slot->head >> 32 == 2 && c->nesting == 0);
	CONFIRM(!write_one(ring) && c->slot->head >> 32 == 2);
	ring->stopped = WEFT_KERNEL_RUNS;
	ring->subbuf_mask = SUBBUF - 1;
	return 0;
}

/* A ring whose words contradict each other stops: nothing more is published, all is counted. */
static int test_contradiction(struct weft_ring *ring)
{
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u64 position, count, head, lost, i;

	go_to_the_end(ring, 1000, &position, &count);
	CONFIRM(write_one(ring));
	lost = c->slot->discarded[WEFT_DISCARD_CONTENDED];
	c->base_position += 2ull * SUBBUF * SUBBUFS;
	for (i = 0; i < PER_SUB && !ring->stopped; i++)
		write_one(ring);
	CONFIRM(ring->stopped == WEFT_KERNEL_STOP_POSITION);
	head = c->slot->head;
	CONFIRM(!write_one(ring) && c->slot->head == head && c->nesting == 0);
	CONFIRM(c->slot->discarded[WEFT_DISCARD_CONTENDED] > lost);
	return 0;
}

static int test_rings(void)
{
	const struct weft_kernel_channel channel = {
		.mode = WEFT_RING_DISCARD,
		.clock = WEFT_CLOCK_MONOTONIC,
		.slot_shift = 13,
		.subbuf_shift = 12,
	};
	struct weft_ring ring = {};
	int error = weft_ring_init(&ring, &channel);

	if (error)
		return error;
	preempt_disable();
	error = test_wrap(&ring);
	if (!error)
		error = test_nesting(&ring);
	if (!error)
		error = test_frontier(&ring);
	if (!error)
		error = test_stop_elsewhere(&ring);
	if (!error)
		error = test_contradiction(&ring);
	preempt_enable();
	weft_ring_destroy(&ring);
	return error;
}

static int test_reads(void)
{
	static const char text[] =
		"a text of more than sixty-four bytes, so that it takes two pieces";
	char copy[128];
	u64 value;

	CONFIRM(weft_load_kernel(&value, (unsigned long)text, 2) && value == ('a' | ' ' << 8));
	CONFIRM(!weft_load_kernel(&value, 8, 8) && value == 0);
	CONFIRM(!weft_load_kernel(&value, 1ull << 63, 8));
	CONFIRM(!weft_load_kernel(&value, (u64)-ENOENT, 4));
	CONFIRM(weft_copy_text(copy, (unsigned long)text, sizeof(copy), false) == sizeof(text) - 1);
	CONFIRM(weft_copy_text(copy, (unsigned long)text, 10, false) == 10);
	CONFIRM(weft_copy_text(copy, 8, 10, false) < 0);
	return 0;
}

struct member {
	u32 first;
	s16 second;
	const char *text;
};

/* Runs a program with an argument, members of the struct that it points to, a string and a
 * fault. */
static int test_fetch(void)
{
	static const struct weft_fetch_step steps[] = {
		{.code = WEFT_STEP_ARG_STORE4, .arg = 0, .out = 0},
		{.code = WEFT_FETCH_ARG, .arg = 1, .size = 8},
		{.code = WEFT_FETCH_LOAD,
		 .size = 2,
		 .offset = offsetof(struct member, second),
		 .flags = WEFT_FETCH_SIGNED},
		{.code = WEFT_FETCH_STORE, .size = 8, .out = 4},
		{.code = WEFT_FETCH_ARG, .arg = 1, .size = 8},
		{.code = WEFT_FETCH_LOAD, .size = 8, .offset = offsetof(struct member, text)},
		{.code = WEFT_FETCH_STRING, .limit = 100, .out = 12},
		{.code = WEFT_FETCH_ARG, .arg = 2, .size = 8},
		{.code = WEFT_FETCH_LOAD, .size = 8},
		{.code = WEFT_FETCH_STORE, .size = 8, .out = 16},
		{.code = WEFT_FETCH_STRING, .limit = 100, .out = 24, .segment = 1},
		{.code = WEFT_FETCH_ARG, .arg = 2, .size = 8},
		{.code = WEFT_FETCH_BYTES, .size = 12, .out = 28, .flags = WEFT_STEP_TEXT},
		{.code = WEFT_STEP_END},
	};
	const struct member member = {.second = -2, .text = "weft"};
	const u64 args[] = {0x1122334455667788, (unsigned long)&member, 16};
	struct weft_segment segments[2];
	u8 fixed[40], scratch[200];
	u64 wanted = -2;
	struct weft_fetch_run run = {
		.args = args, .fixed = fixed, .segments = segments, .scratch = scratch};

	preempt_disable();
	weft_fetch_run(steps, &run);
	preempt_enable();
	CONFIRM(!memcmp(fixed, "\x88\x77\x66\x55", 4) && !memcmp(fixed + 4, &wanted, 8));
	CONFIRM(!memcmp(fixed + 12, "\x04\0\0", 4) && segments[0].size == 4);
	CONFIRM(!memcmp(segments[0].data, "weft", 4));
	CONFIRM(!memchr_inv(fixed + 16, 0, 8));
	CONFIRM(!memcmp(fixed + 24, "\x07\0\0", 4) && segments[1].size == 7);
	CONFIRM(!memcmp(segments[1].data, "(fault)", 7));
	CONFIRM(!memcmp(fixed + 28, "(fault)\0\0\0\0", 12));
	return 0;
}

int weft_selftest(void)
{
	int error = test_rings();

	if (!error)
		error = test_reads();
	if (!error)
		error = test_fetch();
	return error;
}
