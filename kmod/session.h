/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session: what is recorded of whom.
 *
 * All control (ioctls, the end of descriptors) is under one lock: it is rare, and most of it waits
 * for probes anyhow. Probes never take it; what they read of a session is `scope` (RCU) and each
 * event's own `on`. Who holds a reference: the session's file, its channels, its events.
 */
#ifndef WEFT_KMOD_SESSION_H
#define WEFT_KMOD_SESSION_H

#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>

#include "scope.h"

extern struct mutex weft_control_lock;

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
};

/* On /dev/weft: a descriptor, or negative. */
int weft_session_ioctl_create(void __user *user);

/* An internal contradiction: what the session records ends, as soon as there may be waited for
 * it. Any context; the caller has a reference. */
void weft_session_stop(struct weft_session *session, enum weft_kernel_stop why);
/* Sessions that wait for it are ended. No descriptor may be open. */
void weft_session_flush(void);

void weft_session_get(struct weft_session *session);
void weft_session_put(struct weft_session *session);

#endif /* WEFT_KMOD_SESSION_H */
