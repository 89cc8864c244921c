// SPDX-License-Identifier: GPL-2.0-only
/* A session's descriptor: session_file.h. */
#include "session_file.h"

#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "channel_file.h"
#include "event.h"
#include "session.h"
#include "statedump.h"
#include "lib/abi/kernel.h"

static long run_status(void *object, struct weft_request *request)
{
	struct weft_kernel_session_status *status = request->arg;
	struct weft_session *session = object;

	if (status->reserved)
		return -EINVAL;
	status->state = READ_ONCE(session->stopped);
	status->contradictions = atomic64_read(&session->contradictions);
	mutex_lock(&weft_control_lock);
	weft_events_take_missed(session, session->on);
	status->missed_anywhere = session->missed_anywhere;
	mutex_unlock(&weft_control_lock);
	return weft_control_answer(request);
}

static long run_switch(void *object, struct weft_request *request)
{
	const struct weft_kernel_switch *arg = request->arg;
	struct weft_session *session = object;
	bool was_on;
	int error;

	if (arg->on > 1)
		return -EINVAL;
	if (arg->on && READ_ONCE(session->stopped))
		return -ESHUTDOWN;
	mutex_lock(&weft_control_lock);
	was_on = session->on;
	weft_events_take_missed(session, was_on);
	WRITE_ONCE(session->on, arg->on);
	weft_events_update(session);
	weft_event_synchronize();
	weft_events_take_missed(session, was_on || arg->on);
	error = weft_events_apply(session);
	mutex_unlock(&weft_control_lock);
	return error;
}

/* The caller has the lock of control. */
static int change_scope(struct weft_session *session, const struct weft_kernel_scope *arg)
{
	switch (arg->change) {
	case WEFT_KERNEL_SCOPE_ADD:
		return weft_scope_add(&session->scope, arg->cgroup);
	case WEFT_KERNEL_SCOPE_REMOVE:
		return weft_scope_remove(&session->scope, arg->cgroup);
	default:
		return -EINVAL;
	}
}

static long run_scope(void *object, struct weft_request *request)
{
	const struct weft_kernel_scope *arg = request->arg;
	struct weft_session *session = object;
	int error;

	if (!weft_is_zero(arg->reserved, ARRAY_SIZE(arg->reserved)) || session->all)
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	error = change_scope(session, arg);
	if (!error)
		error = weft_events_apply(session);
	mutex_unlock(&weft_control_lock);
	return error;
}

static long run_track(void *object, struct weft_request *request)
{
	const struct weft_kernel_track *arg = request->arg;
	struct weft_session *session = object;
	int error;

	if (arg->reserved0 || !weft_is_zero(arg->reserved, ARRAY_SIZE(arg->reserved)))
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	error = weft_scope_track(&session->scope, arg);
	weft_events_update(session);
	mutex_unlock(&weft_control_lock);
	return error;
}

static long run_channel(void *object, struct weft_request *request)
{
	return weft_channel_file_create(object, request->arg);
}

static long run_statedump(void *object, struct weft_request *request)
{
	const struct weft_kernel_statedump *arg = request->arg;

	if (arg->flags || !weft_is_zero(arg->reserved, ARRAY_SIZE(arg->reserved)))
		return -EINVAL;
	return weft_statedump(object, arg->cgroup);
}

static const struct weft_ioctl session_ioctls[] = {
	{.command = WEFT_IOCTL_SWITCH, .run = run_switch},
	{.command = WEFT_IOCTL_SCOPE, .run = run_scope},
	{.command = WEFT_IOCTL_TRACK, .run = run_track},
	{.command = WEFT_IOCTL_SESSION_STATUS, .run = run_status},
	{.command = WEFT_IOCTL_CHANNEL, .run = run_channel},
	{.command = WEFT_IOCTL_STATEDUMP, .run = run_statedump},
	{},
};

static long session_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	return weft_control(session_ioctls, file->private_data, command, arg);
}

/* The last copy of the descriptor is closed: all probes are detached, even where rings and events
 * still have open descriptors. */
static int session_release(struct inode *inode, struct file *file)
{
	struct weft_session *session = file->private_data;

	mutex_lock(&weft_control_lock);
	session->ended = true;
	weft_session_end(session);
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

int weft_session_file_create(const struct weft_request *request, const struct kobject *device)
{
	const struct weft_kernel_session *arg = request->arg;
	struct weft_session *session;
	int fd;

	if ((arg->flags & ~WEFT_KERNEL_SESSION_ALL) ||
	    !weft_is_zero(arg->reserved, ARRAY_SIZE(arg->reserved)))
		return -EINVAL;
	session = weft_session_new(arg->flags, weft_events_end, device);
	if (!session)
		return -ENOMEM;
	fd = anon_inode_getfd("[weft-session]", &session_fops, session, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		weft_session_put(session);
	return fd;
}
