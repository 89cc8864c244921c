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
#include "statedump.h"
#include "uapi.h"

DEFINE_MUTEX(weft_control_lock);

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

/* The caller has the lock of control. */
static void end_events(struct weft_session *session)
{
	struct weft_event *event, *next;

	WRITE_ONCE(session->on, false);
	list_for_each_entry_safe (event, next, &session->events, node)
		weft_event_end(event);
}

/* Sessions that stopped and whose events are not ended yet, each with a reference. */
static LLIST_HEAD(stopping_sessions);

static void end_stopped(struct work_struct *work)
{
	struct llist_node *stopped = llist_del_all(&stopping_sessions);
	struct weft_session *session, *next;

	llist_for_each_entry_safe (session, next, stopped, stopping_node) {
		pr_err("weft: a session stopped: internal contradiction %u\n", session->stopped);
		mutex_lock(&weft_control_lock);
		end_events(session);
		mutex_unlock(&weft_control_lock);
		weft_session_put(session);
	}
}

static DECLARE_WORK(stopper, end_stopped);

/* Where work may be queued, which it may not be in every context of a probe. */
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

/* Hits that the kernel did not deliver. The caller has the lock of control. */
static void take_missed(struct weft_session *session, bool counts)
{
	struct weft_event *event;

	list_for_each_entry (event, &session->events, node)
		weft_event_take_missed(event, counts);
}

static long ioctl_status(struct weft_session *session, void __user *user)
{
	struct weft_kernel_session_status status;
	u32 user_size;
	int error = weft_copy_in(&status, sizeof(status), user, &user_size);

	if (error)
		return error;
	if (status.reserved)
		return -EINVAL;
	status.state = READ_ONCE(session->stopped);
	status.contradictions = atomic64_read(&session->contradictions);
	mutex_lock(&weft_control_lock);
	take_missed(session, session->on);
	status.missed_anywhere = session->missed_anywhere;
	mutex_unlock(&weft_control_lock);
	return weft_copy_out(user, &status, sizeof(status), user_size);
}

static long ioctl_switch(struct weft_session *session, void __user *user)
{
	struct weft_kernel_switch arg;
	struct weft_event *event;
	u32 user_size;
	bool was_on;
	int error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (error)
		return error;
	if (arg.on > 1)
		return -EINVAL;
	if (arg.on && READ_ONCE(session->stopped))
		return -ESHUTDOWN;
	mutex_lock(&weft_control_lock);
	was_on = session->on;
	take_missed(session, was_on);
	WRITE_ONCE(session->on, arg.on);
	list_for_each_entry (event, &session->events, node)
		weft_event_update(event);
	weft_event_synchronize();
	take_missed(session, was_on || arg.on);
	error = weft_uprobe_apply(session);
	mutex_unlock(&weft_control_lock);
	return error;
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
	if (!error)
		error = weft_uprobe_apply(session);
	mutex_unlock(&weft_control_lock);
	return error;
}

static long ioctl_track(struct weft_session *session, void __user *user)
{
	struct weft_kernel_track arg;
	struct weft_event *event;
	u32 user_size;
	int error = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (error)
		return error;
	if (arg.reserved0 || !weft_is_zero(arg.reserved, ARRAY_SIZE(arg.reserved)))
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	error = weft_scope_track(&session->scope, &arg);
	list_for_each_entry (event, &session->events, node)
		weft_event_update(event);
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
	case _IOC_NR(WEFT_IOCTL_TRACK):
		return ioctl_track(session, user);
	case _IOC_NR(WEFT_IOCTL_SESSION_STATUS):
		return ioctl_status(session, user);
	case _IOC_NR(WEFT_IOCTL_CHANNEL):
		return weft_channel_ioctl_create(session, user);
	case _IOC_NR(WEFT_IOCTL_STATEDUMP):
		return weft_statedump_ioctl(session, user);
	default:
		return -ENOTTY;
	}
}

/* The last descriptor is closed: all probes go, whoever still holds rings and events. */
static int session_release(struct inode *inode, struct file *file)
{
	struct weft_session *session = file->private_data;

	mutex_lock(&weft_control_lock);
	session->ended = true;
	end_events(session);
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
	init_irq_work(&session->stop, stop_soon);
	session->all = arg.flags & WEFT_KERNEL_SESSION_ALL;
	session->scope.everybody = session->all;
	fd = anon_inode_getfd("[weft-session]", &session_fops, session, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		weft_session_put(session);
	return fd;
}
