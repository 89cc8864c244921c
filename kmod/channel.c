// SPDX-License-Identifier: GPL-2.0-only
/* Making and ending channels: channel.h. */
#include "channel.h"

#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "control.h"

static void free_channel(struct kref *refs)
{
	struct weft_channel *channel = container_of(refs, struct weft_channel, refs);

	weft_ring_destroy(&channel->ring);
	weft_contexts_destroy(&channel->contexts);
	weft_session_put(channel->session);
	kfree(channel);
}

void weft_channel_get(struct weft_channel *channel)
{
	kref_get(&channel->refs);
}

void weft_channel_put(struct weft_channel *channel)
{
	kref_put(&channel->refs, free_channel);
}

static void contradicted(struct weft_ring *ring, enum weft_kernel_stop why)
{
	weft_session_stop(container_of(ring, struct weft_channel, ring)->session, why);
}

static int check(const struct weft_kernel_channel *arg)
{
	if (!weft_is_zero(arg->reserved, ARRAY_SIZE(arg->reserved)))
		return -EINVAL;
	if (arg->mode != WEFT_RING_DISCARD && arg->mode != WEFT_RING_OVERWRITE)
		return -EINVAL;
	if (arg->clock != WEFT_CLOCK_TSC && arg->clock != WEFT_CLOCK_MONOTONIC)
		return -EINVAL;
	if (!(weft_clocks() & 1u << arg->clock))
		return -EOPNOTSUPP;
	if (arg->subbuf_shift < PAGE_SHIFT || arg->subbuf_shift < WEFT_RING_MIN_SUBBUF_SHIFT ||
	    arg->slot_shift > WEFT_RING_MAX_SLOT_SHIFT ||
	    arg->slot_shift < arg->subbuf_shift + WEFT_RING_MIN_SUBBUFS_SHIFT ||
	    arg->slot_shift > arg->subbuf_shift + WEFT_RING_MAX_SUBBUFS_SHIFT)
		return -EINVAL;
	if (arg->context_count > WEFT_KERNEL_MAX_CONTEXTS || !arg->context_count != !arg->contexts)
		return -EINVAL;
	return nr_cpu_ids + 1 <= WEFT_RING_MAX_SLOTS ? 0 : -EOPNOTSUPP;
}

static int copy_contexts(struct weft_contexts *contexts, const struct weft_kernel_channel *arg)
{
	struct weft_context_spec *specs;
	int error;

	if (!arg->context_count)
		return 0;
	specs = memdup_user(u64_to_user_ptr(arg->contexts), arg->context_count * sizeof(*specs));
	if (IS_ERR(specs))
		return PTR_ERR(specs);
	error = weft_contexts_init(contexts, specs, arg->context_count);
	kfree(specs);
	return error;
}

struct weft_channel *weft_channel_new(struct weft_session *session,
				      const struct weft_kernel_channel *arg)
{
	struct weft_channel *channel;
	int error = check(arg);

	if (error)
		return ERR_PTR(error);
	channel = kzalloc(sizeof(*channel), GFP_KERNEL);
	if (!channel)
		return ERR_PTR(-ENOMEM);
	kref_init(&channel->refs);
	error = copy_contexts(&channel->contexts, arg);
	if (!error)
		error = weft_ring_init(&channel->ring, arg);
	if (error) {
		weft_contexts_destroy(&channel->contexts);
		kfree(channel);
		return ERR_PTR(error);
	}
	channel->session = session;
	weft_session_get(session);
	channel->ring.contradicted = contradicted;
	return channel;
}
