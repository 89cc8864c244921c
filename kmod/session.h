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

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "scope.h"

extern struct mutex weft_control_lock;

struct weft_session {
	struct kref refs;
	struct weft_scope scope;
	bool all; /* WEFT_KERNEL_SESSION_ALL */
	bool on;
	bool ended; /* its file is closed: no new events */
	struct list_head events;
};

/* On /dev/weft: a descriptor, or negative. */
int weft_session_ioctl_create(void __user *user);

void weft_session_get(struct weft_session *session);
void weft_session_put(struct weft_session *session);

#endif /* WEFT_KMOD_SESSION_H */
