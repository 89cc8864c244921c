/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A channel: one ring set of a session, what is written in front of each payload, and the events
 * that write into it. References: its file, and each event until no probe of it can run any more.
 */
#ifndef WEFT_KMOD_CHANNEL_H
#define WEFT_KMOD_CHANNEL_H

#include <linux/kref.h>

#include "context.h"
#include "ring.h"

struct weft_session;

struct weft_channel {
	struct weft_ring ring;
	struct weft_contexts contexts;
	struct weft_session *session;
	struct kref refs;
	u32 next_event; /* id */
	u64 polled;	/* sub-buffers filled when a reader last polled */
};

/* On a session: a descriptor of the ring, or negative. */
int weft_channel_ioctl_create(struct weft_session *session, void __user *user);

void weft_channel_put(struct weft_channel *channel);

/* channel_file.c: what the descriptor does. */
extern const struct file_operations weft_channel_fops;

#endif /* WEFT_KMOD_CHANNEL_H */
