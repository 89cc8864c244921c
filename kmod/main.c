// SPDX-License-Identifier: GPL-2.0-only
/*
 * weft.ko: the kernel tracer. This file has the device and the module's birth and end.
 *
 * /dev/weft hands out sessions (session.c), these channels (channel.c), these events (event.c); see
 * lib/abi/kernel.h for what user space sees. Every open descriptor holds a reference to the module,
 * so at unload there are none; what may still be there are events whose memory waits to be freed.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "clock.h"
#include "event.h"
#include "guard.h"
#include "selftest.h"
#include "session.h"
#include "statedump.h"
#include "uapi.h"

#define WEFT_MODULE_VERSION "0.1"

static u32 features(void)
{
	u32 bits = WEFT_KERNEL_PARTS | WEFT_KERNEL_USER_ADDRESSES | WEFT_KERNEL_SOCKET_ADDRESSES;

	if (WEFT_HAS_TRACEPOINTS)
		bits |= WEFT_KERNEL_TRACEPOINTS;
	if (WEFT_HAS_TRACEPOINTS && IS_ENABLED(CONFIG_HAVE_SYSCALL_TRACEPOINTS))
		bits |= WEFT_KERNEL_SYSCALLS | WEFT_KERNEL_UNKNOWN_SYSCALLS;
	if (IS_ENABLED(CONFIG_KPROBES) && IS_ENABLED(CONFIG_KRETPROBES))
		bits |= WEFT_KERNEL_KPROBES;
#ifdef WEFT_HAS_UPROBES
	bits |= WEFT_KERNEL_UPROBES;
#endif
	if (IS_ENABLED(CONFIG_CGROUPS))
		bits |= WEFT_KERNEL_SCOPES;
	return bits;
}

static long ioctl_abi(void __user *user)
{
	struct weft_kernel_abi abi;
	u32 user_size;
	int error = weft_copy_in(&abi, sizeof(abi), user, &user_size);

	if (error)
		return error;
	if (!weft_is_zero(abi.reserved, ARRAY_SIZE(abi.reserved)))
		return -EINVAL;
	abi.major = WEFT_KERNEL_ABI_MAJOR;
	abi.minor = WEFT_KERNEL_ABI_MINOR;
	abi.features = features();
	abi.clocks = weft_clocks();
	memset(abi.version, 0, sizeof(abi.version));
	strscpy(abi.version, WEFT_MODULE_VERSION, sizeof(abi.version));
	return weft_copy_out(user, &abi, sizeof(abi), user_size);
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	if (!weft_ioctl_is_ours(cmd))
		return -ENOTTY;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(WEFT_IOCTL_ABI):
		return ioctl_abi(user);
	case _IOC_NR(WEFT_IOCTL_SESSION):
		return weft_session_ioctl_create(user);
	default:
		return -ENOTTY;
	}
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

struct kobject *weft_any_device(void)
{
	return &device.this_device->kobj;
}

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
	weft_syscall_exit();
	weft_guard_exit();
}

module_init(weft_init);
module_exit(weft_exit);
MODULE_DESCRIPTION("weft: container-native tracing");
MODULE_VERSION(WEFT_MODULE_VERSION);
/* So that the agent knows before it loads this. */
MODULE_INFO(weft_abi, __stringify(WEFT_KERNEL_ABI_MAJOR));
MODULE_LICENSE("GPL");
