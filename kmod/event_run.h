/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handles the hit of a probe, in this order: scope, image, filter, contexts, record. An event that
 * is not recorded thus costs as little as possible. The path of the simplest events, which are
 * most events that occur at a high rate, is inline in each probe.
 */
#ifndef WEFT_KMOD_EVENT_RUN_H
#define WEFT_KMOD_EVENT_RUN_H

#include <linux/preempt.h>

#include "event.h"
#include "lib/event/filter.h"

/* `count`, in the functions of this file, is preempt_count() of the traced code. */
bool weft_event_concerns_subject(const struct weft_event *event, const u64 *args,
				 unsigned int count);
unsigned long weft_event_view_of_subjects(const struct weft_event *event);
void weft_event_run_guarded(struct weft_event *event, const u64 *args);

/* Is the traced code an interrupt handler? Its actions do not concern the task that it
 * interrupted. */
static __always_inline bool weft_is_interrupt(unsigned int count)
{
	return (count & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET)) ||
	       (IS_ENABLED(CONFIG_PREEMPT_RT) && in_serving_softirq());
}

static __always_inline bool weft_event_concerns_current(const struct weft_event *event,
							unsigned int count)
{
	if (unlikely(weft_is_interrupt(count)) && event->within)
		return false;
	return weft_scope_wants(event->scope);
}

static __always_inline bool weft_event_concerns(const struct weft_event *event, const u64 *args,
						unsigned int count)
{
	if (event->scope_mode == WEFT_SCOPE_CURRENT)
		return weft_event_concerns_current(event, count);
	return event->scope_mode == WEFT_SCOPE_ALL ||
	       weft_event_concerns_subject(event, args, count);
}

/* enum weft_context_view. An event may concern a task of the session while another tenant's runs.
 */
static __always_inline unsigned long weft_event_view(const struct weft_event *event)
{
	if (likely(event->scope_mode != WEFT_SCOPE_SUBJECTS))
		return event->view;
	return weft_event_view_of_subjects(event);
}

static __always_inline u8 *weft_event_write_contexts(const struct weft_event *event, u8 *to)
{
	const struct weft_contexts *contexts = &event->channel->contexts;

	return contexts->count ? weft_contexts_write(contexts, to, weft_event_view(event), NULL)
			       : to;
}

/* Writes plain arguments into the ring. Nothing here can fault, so nothing needs the guard.
 * The validator bounded step->arg. A call of the kernel's hardened memcpy would check each
 * field again. */
static __always_inline void weft_event_run_plain(struct weft_event *event, const u64 *args)
{
	const struct weft_fetch_step *step = event->steps;
	struct weft_ring *ring = &event->channel->ring;
	struct weft_ring_cpu *c = this_cpu_ptr(ring->cpus);
	u8 *body = weft_ring_reserve(ring, c, event->word0, event->rounded);

	if (unlikely(!body))
		return;
	body = weft_event_write_contexts(event, body);
	for (; step->code != WEFT_STEP_END; step++) {
		if (step->code == WEFT_STEP_ARG_STORE8)
			__builtin_memcpy(body + step->out, &args[step->arg], 8);
		else
			__builtin_memcpy(body + step->out, &args[step->arg], 4);
	}
	weft_ring_commit(ring, c);
}

/* Runs a filter that reads contexts only, so that nothing is fetched for events that it rejects. */
static __always_inline bool weft_event_passes_early(const struct weft_event *event)
{
	return !event->early ||
	       weft_filter_run(event->filter, NULL, NULL, (void *)weft_event_view(event));
}

/* Records an event that concerns the session and passed early filters. */
static __always_inline void weft_event_record(struct weft_event *event, const u64 *args)
{
	if (likely(event->way == WEFT_WAY_PLAIN))
		weft_event_run_plain(event, args);
	else
		weft_event_run_guarded(event, args);
}

/* Preemption is off, and event->on was seen. `args`: at least those that the program reads, at most
 * WEFT_FETCH_MAX_ARGS. */
static __always_inline void weft_event_run(struct weft_event *event, const u64 *args,
					   unsigned int count)
{
	if (weft_event_concerns(event, args, count) && weft_event_passes_early(event))
		weft_event_record(event, args);
}

#endif /* WEFT_KMOD_EVENT_RUN_H */
