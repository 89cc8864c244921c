// SPDX-License-Identifier: GPL-2.0-only
/* The life of sessions: session.h. */
#include "session.h"

#include <linux/slab.h>
#include <linux/workqueue.h>

#include "control.h"

static void free_session(struct kref *refs)
{
	struct weft_session *session = container_of(refs, struct weft_session, refs);

	irq_work_sync(&session->stop);
	weft_scope_destroy(&session->scope);
	kfree(session);
}

void weft_session_get(struct weft_session *session)
{
	kref_get(&session->refs);
}

void weft_session_put(struct weft_session *session)
{
	kref_put(&session->refs, free_session);
}

void weft_session_end(struct weft_session *session)
{
	WRITE_ONCE(session->on, false);
	session->end_events(session);
}

/* Sessions that stopped and have events that are not ended yet, each with a reference. */
static LLIST_HEAD(stopping_sessions);

static void end_stopped(struct work_struct *work)
{
	struct llist_node *stopped = llist_del_all(&stopping_sessions);
	struct weft_session *session, *next;

	llist_for_each_entry_safe (session, next, stopped, stopping_node) {
		pr_err("weft: a session stopped: internal contradiction %u\n", session->stopped);
		mutex_lock(&weft_control_lock);
		weft_session_end(session);
		mutex_unlock(&weft_control_lock);
		weft_session_put(session);
	}
}

static DECLARE_WORK(stopper, end_stopped);

/* Queues the work from here, because not every context of a probe may do so. */
static void stop_soon(struct irq_work *work)
{
	struct weft_session *session = container_of(work, struct weft_session, stop);

	if (test_and_set_bit(0, &session->stopping))
		return;
	weft_session_get(session);
	llist_add(&session->stopping_node, &stopping_sessions);
	schedule_work(&stopper);
}

void weft_session_stop(struct weft_session *session, enum weft_kernel_stop why)
{
	cmpxchg(&session->stopped, WEFT_KERNEL_RUNS, why);
	atomic64_inc(&session->contradictions);
	irq_work_queue(&session->stop);
}

void weft_session_flush(void)
{
	flush_work(&stopper);
}

struct weft_session *weft_session_new(u32 flags, void (*end_events)(struct weft_session *session),
				      const struct kobject *device)
{
	struct weft_session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return NULL;
	kref_init(&session->refs);
	INIT_LIST_HEAD(&session->events);
	init_irq_work(&session->stop, stop_soon);
	session->all = flags & WEFT_KERNEL_SESSION_ALL;
	session->scope.all = session->all;
	session->end_events = end_events;
	session->device = device;
	return session;
}
