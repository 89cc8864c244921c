// SPDX-License-Identifier: GPL-2.0-only
/* Sessions and their ioctls: session.h. */
#include "session.h"

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "channel.h"
#include "event.h"
#include "uapi.h"

DEFINE_MUTEX(weft_control_lock);

static void free_session(struct kref *refs)
{
	struct weft_session *session = container_of(refs, struct weft_session, refs);

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

static long ioctl_switch(struct weft_session *session, void __user *user)
{
	struct weft_kernel_switch arg;
	struct weft_event *event;
	u32 user_size;
	int error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (error)
		return error;
	if (arg.on > 1)
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	session->on = arg.on;
	list_for_each_entry (event, &session->events, node)
		weft_event_update(event);
	weft_event_synchronize();
	mutex_unlock(&weft_control_lock);
	return 0;
}

static long ioctl_scope(struct weft_session *session, void __user *user)
{
	struct weft_kernel_scope arg;
	u32 user_size;
	int error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (error)
		return error;
	if (!weft_is_zero(arg.reserved, ARRAY_SIZE(arg.reserved)) || session->all)
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	switch (arg.change) {
	case WEFT_KERNEL_SCOPE_ADD:
		error = weft_scope_add(&session->scope, arg.cgroup);
		break;
	case WEFT_KERNEL_SCOPE_REMOVE:
		error = weft_scope_remove(&session->scope, arg.cgroup);
		break;
	default:
		error = -EINVAL;
	}
	mutex_unlock(&weft_control_lock);
	return error;
}

static long session_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct weft_session *session = file->private_data;
	void __user *user = (void __user *)arg;

	if (!weft_ioctl_is_ours(cmd))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(WEFT_IOCTL_SWITCH):
		return ioctl_switch(session, user);
	case _IOC_NR(WEFT_IOCTL_SCOPE):
		return ioctl_scope(session, user);
	case _IOC_NR(WEFT_IOCTL_CHANNEL):
		return weft_channel_ioctl_create(session, user);
	default:
		return -ENOTTY;
	}
}

/* The last descriptor is closed: all probes go, whoever still holds rings and events. */
static int session_release(struct inode *inode, struct file *file)
{
	struct weft_session *session = file->private_data;
	struct weft_event *event, *next;

	mutex_lock(&weft_control_lock);
	session->ended = true;
	session->on = false;
	list_for_each_entry_safe (event, next, &session->events, node)
		weft_event_end(event);
	mutex_unlock(&weft_control_lock);
	weft_session_put(session);
	return 0;
}

static const struct file_operations session_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = session_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = session_release,
};

int weft_session_ioctl_create(void __user *user)
{
	struct weft_kernel_session arg;
	struct weft_session *session;
	u32 user_size;
	int fd, error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (error)
		return error;
	if ((arg.flags & ~WEFT_KERNEL_SESSION_ALL) ||
	    !weft_is_zero(arg.reserved, ARRAY_SIZE(arg.reserved)))
		return -EINVAL;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	kref_init(&session->refs);
	INIT_LIST_HEAD(&session->events);
	session->all = arg.flags & WEFT_KERNEL_SESSION_ALL;
	fd = anon_inode_getfd("[weft-session]", &session_fops, session, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		weft_session_put(session);
	return fd;
}
