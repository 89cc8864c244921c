// SPDX-License-Identifier: GPL-2.0-only
/* An event's descriptor: event_file.h. */
#include "event_file.h"

#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "event.h"
#include "event_input.h"
#include "source_table.h"

static void end_and_put(struct weft_event *event)
{
	mutex_lock(&weft_control_lock);
	weft_event_end(event);
	mutex_unlock(&weft_control_lock);
	weft_event_put(event);
}

static long run_status(void *object, struct weft_request *request)
{
	struct weft_kernel_event_status *status = request->arg;
	struct weft_event *event = object;

	if (!weft_is_zero(status->reserved, ARRAY_SIZE(status->reserved)))
		return -EINVAL;
	mutex_lock(&weft_control_lock);
	status->state = event->ended ? ESHUTDOWN : 0;
	weft_event_take_missed(event, event->on);
	status->missed = event->missed;
	mutex_unlock(&weft_control_lock);
	return weft_control_answer(request);
}

static const struct weft_ioctl event_ioctls[] = {
	{.command = WEFT_IOCTL_EVENT_STATUS, .run = run_status},
	{},
};

static long event_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	return weft_control(event_ioctls, file->private_data, command, arg);
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

/* Makes a descriptor, which takes over the caller's reference. */
static int make_file(struct weft_event *event)
{
	return anon_inode_getfd("[weft-event]", &event_fops, event, O_RDWR | O_CLOEXEC);
}

/* Makes and starts the event, whose one reference is the caller's until a descriptor has it. */
static int start(struct weft_event *event, const struct weft_event_input *input,
		 struct weft_request *request)
{
	struct weft_kernel_event *arg = request->arg;
	int result = weft_event_make(event, input);

	if (result)
		return result;
	mutex_lock(&weft_control_lock);
	result = weft_event_start(event, input);
	mutex_unlock(&weft_control_lock);
	if (result)
		return result;
	arg->event_id = event->id;
	result = weft_control_answer(request);
	return result || event->stays ? result : make_file(event);
}

int weft_event_file_create(struct weft_channel *channel, struct weft_request *request)
{
	const struct weft_kernel_event *arg = request->arg;
	struct weft_event_input input = {};
	struct weft_event *event;
	int result = weft_event_input_copy(&input, arg);

	if (result)
		return result;
	event = weft_event_new(channel, weft_source_of(arg->kind));
	result = event ? start(event, &input, request) : -ENOMEM;
	if (result < 0 && event)
		end_and_put(event);
	else if (event && event->stays)
		weft_event_put(event); /* its session keeps it */
	weft_event_input_free(&input);
	return result;
}
