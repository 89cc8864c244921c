// SPDX-License-Identifier: GPL-2.0-only
/* The life of events: event.h. */
#include "event.h"

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "uapi.h"

/* Ended events whose probes may still be running: one wait for all of them. */
static LLIST_HEAD(dead_events);

static void free_event(struct weft_event *event)
{
	struct weft_channel *channel = event->channel;

	if (weft_event_is_syscall(event))
		weft_syscall_free(event);
	if (weft_event_is_uprobe(event))
		weft_uprobe_free(event);
	if (weft_event_is_kprobe(event))
		weft_kprobe_free(event);
	weft_event_unmake(event);
	kfree(event);
	weft_channel_put(channel);
}

void weft_event_synchronize(void)
{
	/* Tracepoints' own grace period, and RCU's for all that runs with preemption off. */
	tracepoint_synchronize_unregister();
}

static void reap(struct work_struct *work)
{
	struct llist_node *dead = llist_del_all(&dead_events);
	struct weft_event *event, *next;
	bool uprobes = false;

	if (!dead)
		return;
	llist_for_each_entry (event, dead, dead)
		uprobes |= weft_event_is_uprobe(event);
	weft_event_synchronize();
	if (uprobes)
		weft_uprobe_synchronize();
	llist_for_each_entry_safe (event, next, dead, dead)
		free_event(event);
}

static DECLARE_WORK(reaper, reap);

void weft_event_flush(void)
{
	flush_work(&reaper);
}

/* Nobody refers to the event any more, but for probes that may still be running. */
static void release_event(struct kref *refs)
{
	struct weft_event *event = container_of(refs, struct weft_event, refs);

	if (!event->attached) {
		free_event(event);
		return;
	}
	llist_add(&event->dead, &dead_events);
	schedule_work(&reaper);
}

void weft_event_get(struct weft_event *event)
{
	kref_get(&event->refs);
}

void weft_event_put(struct weft_event *event)
{
	kref_put(&event->refs, release_event);
}

static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	switch (event->kind) {
	case WEFT_KERNEL_TRACEPOINT:
		return weft_tracepoint_attach(event, input->name);
	case WEFT_KERNEL_SYSCALL_ENTRY:
	case WEFT_KERNEL_SYSCALL_EXIT:
		return weft_syscall_attach(event, input);
	case WEFT_KERNEL_STATE:
		event->state = input->arg.number;
		return 0; /* statedump.c comes and looks for it */
	case WEFT_KERNEL_UPROBE:
	case WEFT_KERNEL_URETPROBE:
		return weft_uprobe_attach(event, &input->arg);
	default: /* KPROBE, KRETPROBE */
		return weft_kprobe_attach(event, input->name, input->arg.offset);
	}
}

static void detach(struct weft_event *event)
{
	switch (event->kind) {
	case WEFT_KERNEL_TRACEPOINT:
		weft_tracepoint_detach(event);
		break;
	case WEFT_KERNEL_SYSCALL_ENTRY:
	case WEFT_KERNEL_SYSCALL_EXIT:
		weft_syscall_detach(event);
		break;
	case WEFT_KERNEL_STATE:
		break;
	case WEFT_KERNEL_UPROBE:
	case WEFT_KERNEL_URETPROBE:
		weft_uprobe_detach(event);
		break;
	default:
		weft_kprobe_detach(event);
	}
}

/* Trackers make a session that records everything ask whom an event concerns: who runs, if
   nobody. */
static enum weft_event_scope scope_mode(const struct weft_event *event)
{
	if (event->own_scope_mode != WEFT_SCOPE_ALL || !event->scope->trackers.kinds)
		return event->own_scope_mode;
	return event->subjects & ~WEFT_KERNEL_SUBJECT_CURRENT ? WEFT_SCOPE_SUBJECTS
							      : WEFT_SCOPE_CURRENT;
}

void weft_event_update(struct weft_event *event)
{
	WRITE_ONCE(event->scope_mode, scope_mode(event));
	WRITE_ONCE(event->on, event->channel->session->on);
}

void weft_event_take_missed(struct weft_event *event, bool counts)
{
	struct weft_channel *channel = event->channel;
	u32 seen;
	s32 more;

	if (!weft_event_is_kprobe(event))
		return;
	seen = weft_kprobe_missed(event);
	more = seen - event->missed_seen;
	if (more <= 0)
		return;
	event->missed_seen = seen;
	event->missed += more;
	if (!counts)
		return;
	if (!channel->session->all) {
		channel->session->missed_anywhere += more;
		return;
	}
	preempt_disable();
	weft_ring_discard_many(&channel->ring, WEFT_DISCARD_MISSED, more);
	preempt_enable();
}

void weft_event_end(struct weft_event *event)
{
	const bool was_on = event->on;

	if (event->ended)
		return;
	event->ended = true;
	WRITE_ONCE(event->on, false);
	list_del(&event->node);
	detach(event);
	weft_event_take_missed(event, was_on);
	weft_event_put(event);
}

static void end_and_put(struct weft_event *event)
{
	mutex_lock(&weft_control_lock);
	weft_event_end(event);
	mutex_unlock(&weft_control_lock);
	weft_event_put(event);
}

static long ioctl_status(struct weft_event *event, void __user *user)
{
	struct weft_kernel_event_status status;
	u32 user_size;
	int error = weft_copy_in(&status, sizeof(status), user, &user_size);

	if (error)
		return error;
	if (!weft_is_zero(status.reserved, ARRAY_SIZE(status.reserved)))
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	status.state = event->ended ? ESHUTDOWN : 0;
	weft_event_take_missed(event, event->on);
	status.missed = weft_event_is_uprobe(event) ? weft_uprobe_missed(event) : event->missed;
	mutex_unlock(&weft_control_lock);
	return weft_copy_out(user, &status, sizeof(status), user_size);
}

static long event_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!weft_ioctl_is_ours(cmd) || _IOC_NR(cmd) != _IOC_NR(WEFT_IOCTL_EVENT_STATUS))
		return -ENOTTY;
	return ioctl_status(file->private_data, (void __user *)arg);
}

static int event_release(struct inode *inode, struct file *file)
{
	end_and_put(file->private_data);
	return 0;
}

static const struct file_operations event_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = event_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = event_release,
};

/* Attaches, publishes, turns on. The caller has the lock of control. */
static int start(struct weft_event *event, const struct weft_event_input *input)
{
	struct weft_channel *channel = event->channel;
	int error;

	if (channel->session->ended || READ_ONCE(channel->session->stopped))
		return -ESHUTDOWN;
	if (channel->next_event >= WEFT_KERNEL_MAX_EVENTS)
		return -ENOSPC;
	event->id = channel->next_event;
	event->word0 = event->size | (u64)event->id << 32;
	error = attach(event, input);
	if (error)
		return error;
	event->attached = true;
	error = weft_ring_describe(&channel->ring, event->id, input->description,
				   input->arg.description_size);
	if (error) {
		detach(event);
		return error;
	}
	channel->next_event++;
	event->ended = false;
	weft_event_get(event); /* the session's, until the event is ended */
	list_add_tail(&event->node, &channel->session->events);
	weft_event_update(event);
	return weft_event_is_uprobe(event) ? weft_uprobe_begin(event) : 0;
}

/* A descriptor, which takes over the caller's reference. */
static int make_file(struct weft_event *event)
{
	return anon_inode_getfd("[weft-event]", &event_fops, event, O_RDWR | O_CLOEXEC);
}

/* Makes and starts the event, whose one reference is the caller's until a descriptor has it. */
static int create(struct weft_event *event, const struct weft_event_input *input, void __user *user,
		  u32 user_size)
{
	struct weft_kernel_event arg = input->arg;
	int result = weft_event_make(event, input);

	if (result)
		return result;
	mutex_lock(&weft_control_lock);
	result = start(event, input);
	mutex_unlock(&weft_control_lock);
	if (result)
		return result;
	arg.event_id = event->id;
	result = weft_copy_out(user, &arg, sizeof(arg), user_size);
	return result || event->stays ? result : make_file(event);
}

static struct weft_event *new_event(struct weft_channel *channel)
{
	struct weft_event *event = kzalloc(sizeof(*event), GFP_KERNEL);

	if (!event)
		return NULL;
	kref_init(&event->refs);
	kref_get(&channel->refs);
	event->channel = channel;
	event->ended = true; /* it has not begun */
	return event;
}

int weft_event_ioctl_create(struct weft_channel *channel, void __user *user)
{
	struct weft_event_input input = {};
	struct weft_kernel_event arg;
	struct weft_event *event;
	u32 user_size;
	int result = weft_copy_in(&arg, sizeof(arg), user, &user_size);

	if (!result)
		result = weft_event_input_copy(&input, &arg);
	if (result)
		return result;
	event = new_event(channel);
	result = event ? create(event, &input, user, user_size) : -ENOMEM;
	if (result < 0 && event)
		end_and_put(event);
	else if (result == 0)
		weft_event_put(event); /* it stays with its session */
	weft_event_input_free(&input);
	return result;
}
