// SPDX-License-Identifier: GPL-2.0-only
/* Making and ending channels: channel.h. */
#include "channel.h"

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/slab.h>

#include "session.h"
#include "uapi.h"

static void free_channel(struct kref *refs)
{
	struct weft_channel *channel = container_of(refs, struct weft_channel, refs);

	weft_ring_destroy(&channel->ring);
	weft_contexts_destroy(&channel->contexts);
	weft_session_put(channel->session);
	kfree(channel);
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

/* The ring's file; its position is a place in the ring set (pread). */
static int make_file(struct weft_channel *channel)
{
	struct file *file;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[weft-ring]", &weft_channel_fops, channel, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	fd_install(fd, file);
	return fd;
}

int weft_channel_ioctl_create(struct weft_session *session, void __user *user)
{
	struct weft_kernel_channel arg;
	struct weft_channel *channel;
	u32 user_size;
	int fd, error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (!error)
		error = check(&arg);
	if (error)
		return error;
	channel = kzalloc(sizeof(*channel), GFP_KERNEL);
	if (!channel)
		return -ENOMEM;
	kref_init(&channel->refs);
	error = copy_contexts(&channel->contexts, &arg);
	if (!error)
		error = weft_ring_init(&channel->ring, &arg);
	if (error) {
		weft_contexts_destroy(&channel->contexts);
		kfree(channel);
		return error;
	}
	channel->session = session;
	weft_session_get(session);
	channel->ring.contradicted = contradicted;
	fd = make_file(channel);
	if (fd < 0)
		weft_channel_put(channel);
	return fd;
}
