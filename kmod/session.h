/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session: the tasks that it records, whether it is on, and its events.
 *
 * All changes are made under the lock of control. Probes read a session's `scope` (under RCU) and
 * each event's own `on`. The session's file, its channels and its events each hold a reference.
 */
#ifndef WEFT_KMOD_SESSION_H
#define WEFT_KMOD_SESSION_H

#include <linux/irq_work.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>

#include "scope.h"

struct weft_session {
	struct kref refs;
	struct weft_scope scope;
	bool all; /* WEFT_KERNEL_SESSION_ALL */
	bool on;
	bool ended;   /* its file is closed: no new events */
	bool dumping; /* a statedump is at work */
	u32 dumps;    /* statedumps that were begun */
	struct list_head events;
	u64 missed_anywhere; /* of lib/abi/kernel.h */
	u32 stopped;	     /* enum weft_kernel_stop */
	atomic64_t contradictions;
	unsigned long stopping; /* bit 0: it waits for its events to be ended, or they are */
	struct irq_work stop;
	struct llist_node stopping_node;
	void (*end_events)(struct weft_session *session);
	const struct kobject *device;
};

/* Makes a session that is off, with one reference; NULL: no memory. `flags`: enum
 * weft_kernel_session_flag. `end_events` ends all of the session's events; it is called under the
 * lock of control. `device`: weft's own, from which statedumps find the other devices. */
struct weft_session *weft_session_new(u32 flags, void (*end_events)(struct weft_session *session),
				      const struct kobject *device);

void weft_session_get(struct weft_session *session);
void weft_session_put(struct weft_session *session);

/* Switches the session off and ends its events. The caller has the lock of control. */
void weft_session_end(struct weft_session *session);

/* Stops a session that met an internal contradiction: a worker ends it as soon as it can. Any
 * context; the caller has a reference. */
void weft_session_stop(struct weft_session *session, enum weft_kernel_stop why);
/* Returns when all stopped sessions are ended. No descriptor may be open. */
void weft_session_flush(void);

#endif /* WEFT_KMOD_SESSION_H */
