/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A channel: one ring set of a session, the contexts that stand in front of each payload, and the
 * events that write into it. Its file holds a reference. Each event holds one, too, until none of
 * its probes can run any more.
 */
#ifndef WEFT_KMOD_CHANNEL_H
#define WEFT_KMOD_CHANNEL_H

#include <linux/kref.h>

#include "context.h"
#include "ring.h"
#include "session.h"

struct weft_channel {
	struct weft_ring ring;
	struct weft_contexts contexts;
	struct weft_session *session;
	struct kref refs;
	u32 next_event; /* id */
	u64 polled;	/* sub-buffers filled when a reader last polled */
};

/* Checks what user space gave and makes a channel of it, with one reference; or an error. */
struct weft_channel *weft_channel_new(struct weft_session *session,
				      const struct weft_kernel_channel *arg);

void weft_channel_get(struct weft_channel *channel);
void weft_channel_put(struct weft_channel *channel);

#endif /* WEFT_KMOD_CHANNEL_H */
