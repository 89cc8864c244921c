// SPDX-License-Identifier: GPL-2.0-only
/*
 * weft.ko: the kernel tracer. This file has the device and the module's birth and end.
 *
 * /dev/weft hands out sessions (session_file.c), sessions hand out channels (channel_file.c), and
 * channels hand out events (event_file.c). lib/abi/kernel.h has what user space sees. Every open
 * descriptor holds a reference to the module, so at unload there are none. Events whose memory
 * waits to be freed may still be there.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "clock.h"
#include "control.h"
#include "event.h"
#include "guard.h"
#include "selftest.h"
#include "session.h"
#include "session_file.h"
#include "source_table.h"
#include "lib/abi/kernel.h"

#define WEFT_MODULE_VERSION "0.1"

static u32 features(void)
{
	u32 bits = WEFT_KERNEL_PARTS | WEFT_KERNEL_USER_ADDRESSES | WEFT_KERNEL_SOCKET_ADDRESSES;

	if (IS_ENABLED(CONFIG_CGROUPS))
		bits |= WEFT_KERNEL_SCOPES;
	return bits | weft_source_features();
}

static long run_abi(void *object, struct weft_request *request)
{
	struct weft_kernel_abi *abi = request->arg;

	if (!weft_is_zero(abi->reserved, ARRAY_SIZE(abi->reserved)))
		return -EINVAL;
	abi->major = WEFT_KERNEL_ABI_MAJOR;
	abi->minor = WEFT_KERNEL_ABI_MINOR;
	abi->features = features();
	abi->clocks = weft_clocks();
	memset(abi->version, 0, sizeof(abi->version));
	strscpy(abi->version, WEFT_MODULE_VERSION, sizeof(abi->version));
	return weft_control_answer(request);
}

static long run_session(void *object, struct weft_request *request)
{
	const struct miscdevice *device = object;

	return weft_session_file_create(request, &device->this_device->kobj);
}

static const struct weft_ioctl device_ioctls[] = {
	{.command = WEFT_IOCTL_ABI, .run = run_abi},
	{.command = WEFT_IOCTL_SESSION, .run = run_session},
	{},
};

/* misc_open() stored the miscdevice in private_data. */
static long device_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	return weft_control(device_ioctls, file->private_data, command, arg);
}

static int device_open(struct inode *inode, struct file *file)
{
	return capable(CAP_SYS_ADMIN) ? nonseekable_open(inode, file) : -EPERM;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "weft",
	.fops = &device_fops,
	.mode = 0600,
};

static int __init weft_init(void)
{
	int error = weft_guard_init();

	if (error)
		return error;
	error = weft_selftest();
	if (!error)
		error = misc_register(&device);
	if (error)
		goto no_device;
	return 0;

no_device:
	weft_guard_exit();
	return error;
}

static void __exit weft_exit(void)
{
	misc_deregister(&device);
	weft_session_flush();
	weft_event_flush();
	weft_sources_exit();
	weft_guard_exit();
}

module_init(weft_init);
module_exit(weft_exit);
MODULE_DESCRIPTION("weft: container-native tracing");
MODULE_VERSION(WEFT_MODULE_VERSION);
/* The agent reads it before it loads the module. */
MODULE_INFO(weft_abi, __stringify(WEFT_KERNEL_ABI_MAJOR));
MODULE_LICENSE("GPL");
