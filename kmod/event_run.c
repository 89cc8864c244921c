// SPDX-License-Identifier: GPL-2.0-only
/* The parts of event_run.h that not every event needs. */
#include "event_run.h"

#include "guard.h"

bool weft_event_concerns_subject(const struct weft_event *event, const u64 *args,
				 unsigned int count)
{
	u32 bits = event->subjects & ~WEFT_KERNEL_SUBJECT_CURRENT;

	if ((event->subjects & WEFT_KERNEL_SUBJECT_CURRENT) &&
	    weft_event_concerns_current(event, count))
		return true;
	for (; bits; bits &= bits - 1)
		if (weft_scope_wants_address(event->scope, args[__builtin_ctz(bits)]))
			return true;
	return false;
}

unsigned long weft_event_view_of_subjects(const struct weft_event *event)
{
	if (!event->within || weft_scope_has(event->within, current))
		return event->view;
	return event->view | WEFT_VIEW_OTHER;
}

/* The image is made in the ring itself. */
static void run_direct(struct weft_event *event, const u64 *args)
{
	struct weft_ring *ring = &event->channel->ring;
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	struct weft_fetch_run run;
	u8 *body = weft_ring_reserve(ring, c, event->word0, event->rounded);

	if (unlikely(!body))
		return;
	run.args = args;
	run.scope = event->within;
	run.fixed = weft_event_write_contexts(event, body);
	weft_fetch_run(event->steps, &run);
	weft_ring_commit(ring, c);
}

static void record_image(struct weft_event *event, const u8 *fixed,
			 const struct weft_segment *segments, struct weft_callstacks *stacks)
{
	const struct weft_contexts *contexts = &event->channel->contexts;
	const unsigned long view = weft_event_view(event);
	struct weft_ring *ring = &event->channel->ring;
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u32 size = event->size, i;
	u8 *to;

	if (weft_contexts_have_stacks(contexts))
		size += weft_contexts_take_stacks(contexts, stacks, view);
	for (i = 0; i < event->segments; i++)
		size += segments[i].size;
	if (unlikely(size > ring->max_record)) {
		if (size > event->size + WEFT_FETCH_MAX_BYTES + sizeof(*stacks))
			weft_ring_stop(ring, WEFT_KERNEL_STOP_IMAGE);
		weft_ring_discard(ring, WEFT_DISCARD_TOO_LARGE);
		return;
	}
	to = weft_ring_reserve(ring, c, size | (event->word0 & ~(u64)U32_MAX),
			       weft_ring_round(size));
	if (unlikely(!to))
		return;
	to = weft_contexts_write(contexts, to, view, stacks);
	memcpy(to, fixed, event->fixed_size);
	to += event->fixed_size;
	for (i = 0; i < event->segments; i++) {
		memcpy(to, segments[i].data, segments[i].size);
		to += segments[i].size;
	}
	weft_ring_commit(ring, c);
}

/* The image is made beside the ring, looked at, then copied. */
static noinline void run_image(struct weft_event *event, const u64 *args, int level)
{
	u8 fixed[WEFT_FETCH_MAX_FIXED] __aligned(8);
	struct weft_segment segments[WEFT_FETCH_MAX_SEGMENTS];
	struct weft_fetch_run run = {
		.args = args,
		.scope = event->within,
		.fixed = fixed,
		.segments = segments,
		.scratch = weft_guard_scratch(level),
	};

	weft_fetch_run(event->steps, &run);
	if (event->filter && !event->early &&
	    !weft_filter_run(event->filter, fixed, segments, (void *)weft_event_view(event)))
		return;
	record_image(event, fixed, segments, weft_guard_stacks(level));
}

void weft_event_run_guarded(struct weft_event *event, const u64 *args)
{
	const int level = weft_guard_enter();

	if (unlikely(level < 0)) {
		weft_ring_discard(&event->channel->ring, WEFT_DISCARD_NESTED);
		return;
	}
	if (event->way == WEFT_WAY_DIRECT)
		run_direct(event, args);
	else
		run_image(event, args, level);
	weft_guard_leave(level);
}
