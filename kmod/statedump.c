// SPDX-License-Identifier: GPL-2.0-only
/* A statedump from START to END: statedump.h. */
#include "statedump.h"

#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "control.h"
#include "event_run.h"
#include "limits.h"

int weft_statedump_record(struct weft_statedump *dump, enum weft_kernel_state state, u64 key,
			  const u64 args[WEFT_STATE_ARGS])
{
	if (dump->state != state || dump->key != key)
		dump->next = 0;
	dump->state = state;
	dump->key = key;
	for (; dump->next < dump->count; dump->next++) {
		struct weft_event *event = dump->events[dump->next];

		if (event->state != state || !READ_ONCE(event->on))
			continue;
		preempt_disable();
		dump->full = weft_ring_is_full(&event->channel->ring, event->most);
		if ((!dump->full || !dump->patience) && weft_event_passes_early(event))
			weft_event_record(event, args);
		preempt_enable();
		if (dump->full && dump->patience)
			return -EAGAIN;
		if (dump->full)
			dump->lost++;
		else if (dump->patience)
			dump->patience = msecs_to_jiffies(WEFT_STATEDUMP_PATIENCE_MS);
	}
	dump->next = 0;
	dump->found++;
	return 0;
}

int weft_statedump_walk(struct weft_statedump *dump, weft_statedump_step step, void *place)
{
	int result;

	dump->next = 0;
	do {
		dump->full = false;
		result = step(dump, place);
		if (result == -EAGAIN) {
			schedule_timeout_interruptible(1);
			if (dump->full && dump->patience)
				dump->patience--;
			result = 1;
		}
		cond_resched();
		if (signal_pending(current))
			return -EINTR;
		if (!READ_ONCE(dump->session->on))
			return -ESHUTDOWN;
	} while (result > 0);
	return result;
}

/* START and END. */
static int mark_step(struct weft_statedump *dump, void *place)
{
	const enum weft_kernel_state *state = place;
	const u64 args[WEFT_STATE_ARGS] = {dump->number, dump->found, dump->lost};

	return weft_statedump_record(dump, *state, dump->number, args);
}

static int mark(struct weft_statedump *dump, enum weft_kernel_state state)
{
	return weft_statedump_walk(dump, mark_step, &state);
}

static int run(struct weft_statedump *dump)
{
	int error;

	if (weft_statedump_is_of_some(dump) && !weft_statedump_means_any_task(dump))
		return 0;
	weft_event_synchronize(); /* the first fence */
	dump->number = ++dump->session->dumps;
	error = mark(dump, WEFT_KERNEL_STATE_START);
	dump->found = 0;
	if (!error && !weft_statedump_is_of_some(dump))
		error = weft_statedump_machine(dump);
	if (!error)
		error = weft_statedump_tasks(dump);
	if (error)
		return error;
	weft_event_synchronize(); /* the second */
	return mark(dump, WEFT_KERNEL_STATE_END);
}

/* References to the session's STATE events. The caller has the lock of control. */
static int collect(struct weft_statedump *dump)
{
	struct weft_event *event;
	u32 count = 0;

	list_for_each_entry (event, &dump->session->events, node)
		count += event->kind == WEFT_KERNEL_STATE;
	if (!count)
		return -ENOENT;
	dump->events = kvmalloc_array(count, sizeof(struct weft_event *), GFP_KERNEL);
	if (!dump->events)
		return -ENOMEM;
	list_for_each_entry (event, &dump->session->events, node) {
		if (event->kind != WEFT_KERNEL_STATE)
			continue;
		weft_event_get(event);
		dump->events[dump->count++] = event;
		dump->wanted |= 1u << event->state;
	}
	return 0;
}

/* `cgroup`: 0 for all. */
static int begin(struct weft_statedump *dump, u64 cgroup)
{
	struct weft_session *session = dump->session;
	int error = 0;

	dump->text = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!dump->text)
		return -ENOMEM;
	mutex_lock(&weft_control_lock);
	if (session->dumping)
		error = -EBUSY;
	else if (!session->on)
		error = -ESHUTDOWN;
	if (!error && cgroup)
		error = weft_scope_add(&dump->only, cgroup);
	if (!error)
		error = collect(dump);
	if (error)
		weft_scope_destroy(&dump->only);
	else
		session->dumping = true;
	mutex_unlock(&weft_control_lock);
	if (error)
		kfree(dump->text);
	return error;
}

static void finish(struct weft_statedump *dump)
{
	u32 i;

	mutex_lock(&weft_control_lock);
	dump->session->dumping = false;
	weft_scope_destroy(&dump->only);
	mutex_unlock(&weft_control_lock);
	for (i = 0; i < dump->count; i++)
		weft_event_put(dump->events[i]);
	kvfree(dump->events);
	xa_destroy(&dump->nets);
	kfree(dump->text);
}

int weft_statedump(struct weft_session *session, u64 cgroup)
{
	struct weft_statedump dump = {
		.session = session,
		.patience = msecs_to_jiffies(WEFT_STATEDUMP_PATIENCE_MS),
	};
	int error;

	xa_init(&dump.nets);
	error = begin(&dump, cgroup);
	if (error)
		return error;
	error = run(&dump);
	finish(&dump);
	return error;
}

/* The kernel calls no probe: a dump looks for the session's events. */
static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	event->state = input->arg.number;
	return 0;
}

const struct weft_event_source weft_statedump_source = {.attach = attach};
