// SPDX-License-Identifier: GPL-2.0-only
/* The life of events: event.h. */
#include "event.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/* Ended events whose probes may still be running: one wait for all of them. */
static LLIST_HEAD(dead_events);

static void free_event(struct weft_event *event)
{
	struct weft_channel *channel = event->channel;

	if (event->source->free)
		event->source->free(event);
	kvfree(event->steps);
	kvfree(event->filter);
	kfree(event);
	weft_channel_put(channel);
}

void weft_event_synchronize(void)
{
	/* Waits for the tracepoints' own grace period, and for RCU's, which covers all code that
	 * runs with preemption off. */
	tracepoint_synchronize_unregister();
}

/* Sources whose probes must be waited for, each once. There is at most one for each kind of
 * event. */
struct waits {
	const struct weft_event_source *sources[WEFT_KERNEL_STATE + 1];
	u32 count;
};

static void wait_for(struct waits *waits, const struct weft_event_source *source)
{
	u32 i;

	if (!source->synchronize)
		return;
	for (i = 0; i < waits->count; i++)
		if (waits->sources[i] == source)
			return;
	waits->sources[waits->count++] = source;
}

static void synchronize(const struct waits *waits)
{
	u32 i;

	for (i = 0; i < waits->count; i++)
		waits->sources[i]->synchronize();
}

static void reap(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&dead_events);
	struct weft_event *event, *next;
	struct waits waits = {};

	if (!dead)
		return;
	llist_for_each_entry (event, dead, dead)
		wait_for(&waits, event->source);
	weft_event_synchronize();
	synchronize(&waits);
	llist_for_each_entry_safe (event, next, dead, dead)
		free_event(event);
}

static DECLARE_WORK(reaper, reap);

void weft_event_flush(void)
{
	flush_work(&reaper);
}

/* Only probes that may still be running refer to the event any more. */
static void release_event(struct kref *refs)
{
	struct weft_event *event = container_of(refs, struct weft_event, refs);

	if (!event->attached) {
		free_event(event);
		return;
	}
	llist_add(&event->dead, &dead_events);
	schedule_work(&reaper);
}

void weft_event_get(struct weft_event *event)
{
	kref_get(&event->refs);
}

void weft_event_put(struct weft_event *event)
{
	kref_put(&event->refs, release_event);
}

static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	return event->source->attach ? event->source->attach(event, input) : -EOPNOTSUPP;
}

static void detach(struct weft_event *event)
{
	if (event->source->detach)
		event->source->detach(event);
}

/* Trackers make a session that records everything ask for an event's subjects, or, if it has none,
 * for the task that runs. */
static enum weft_event_scope scope_mode(const struct weft_event *event)
{
	if (event->own_scope_mode != WEFT_SCOPE_ALL || !event->scope->trackers.kinds)
		return event->own_scope_mode;
	return event->subjects & ~WEFT_KERNEL_SUBJECT_CURRENT ? WEFT_SCOPE_SUBJECTS
							      : WEFT_SCOPE_CURRENT;
}

static void update(struct weft_event *event)
{
	WRITE_ONCE(event->scope_mode, scope_mode(event));
	WRITE_ONCE(event->on, event->channel->session->on);
}

void weft_event_take_missed(struct weft_event *event, bool counts)
{
	const struct weft_event_source *source = event->source;
	struct weft_channel *channel = event->channel;
	u64 more;

	if (!source->missed)
		return;
	more = source->missed(event) - event->missed;
	event->missed += more;
	if (!more || !counts || source->discards_missed)
		return;
	if (!channel->session->all) {
		channel->session->missed_anywhere += more;
		return;
	}
	preempt_disable();
	weft_ring_discard_many(&channel->ring, WEFT_DISCARD_MISSED, more);
	preempt_enable();
}

void weft_event_end(struct weft_event *event)
{
	const bool was_on = event->on;

	if (event->ended)
		return;
	event->ended = true;
	WRITE_ONCE(event->on, false);
	list_del(&event->node);
	detach(event);
	weft_event_take_missed(event, was_on);
	weft_event_put(event);
}

int weft_event_start(struct weft_event *event, const struct weft_event_input *input)
{
	struct weft_channel *channel = event->channel;
	int error;

	if (channel->session->ended || READ_ONCE(channel->session->stopped))
		return -ESHUTDOWN;
	if (channel->next_event >= WEFT_KERNEL_MAX_EVENTS)
		return -ENOSPC;
	event->id = channel->next_event;
	event->word0 = event->size | (u64)event->id << 32;
	error = attach(event, input);
	if (error)
		return error;
	event->attached = true;
	error = weft_ring_describe(&channel->ring, event->id, input->description,
				   input->arg.description_size);
	if (error) {
		detach(event);
		return error;
	}
	channel->next_event++;
	event->ended = false;
	weft_event_get(event); /* the session's, until the event is ended */
	list_add_tail(&event->node, &channel->session->events);
	update(event);
	return event->source->begin ? event->source->begin(event) : 0;
}

struct weft_event *weft_event_new(struct weft_channel *channel,
				  const struct weft_event_source *source)
{
	struct weft_event *event = kzalloc(sizeof(*event), GFP_KERNEL);

	if (!event)
		return NULL;
	kref_init(&event->refs);
	weft_channel_get(channel);
	event->channel = channel;
	event->source = source;
	event->ended = true; /* it has not begun */
	return event;
}

void weft_events_update(struct weft_session *session)
{
	struct weft_event *event;

	list_for_each_entry (event, &session->events, node)
		update(event);
}

int weft_events_apply(struct weft_session *session)
{
	struct weft_event *event;
	struct waits waits = {};
	int error = 0;

	list_for_each_entry (event, &session->events, node) {
		int result;

		if (!event->source->apply)
			continue;
		wait_for(&waits, event->source);
		result = event->source->apply(event);
		error = error ? error : result;
	}
	synchronize(&waits);
	return error;
}

void weft_events_take_missed(struct weft_session *session, bool counts)
{
	struct weft_event *event;

	list_for_each_entry (event, &session->events, node)
		weft_event_take_missed(event, counts);
}

void weft_events_end(struct weft_session *session)
{
	struct weft_event *event, *next;

	list_for_each_entry_safe (event, next, &session->events, node)
		weft_event_end(event);
}
