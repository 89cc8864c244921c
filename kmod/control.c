// SPDX-License-Identifier: GPL-2.0-only
/* The lock of control, and the dispatch of ioctls: control.h. */
#include "control.h"

#include <linux/capability.h>
#include <linux/uaccess.h>

#include "limits.h"
#include "lib/abi/kernel.h"

DEFINE_MUTEX(weft_control_lock);

/* Finds a command, whatever size it encodes: the struct itself has its size. */
static const struct weft_ioctl *find(const struct weft_ioctl *table, unsigned int command)
{
	if (_IOC_TYPE(command) != WEFT_KERNEL_IOC)
		return NULL;
	for (; table->run; table++)
		if (_IOC_NR(table->command) == _IOC_NR(command))
			return table;
	return NULL;
}

static int copy_in(struct weft_request *request)
{
	if (get_user(request->user_size, (const u32 __user *)request->user))
		return -EFAULT;
	if (request->user_size < sizeof(u32))
		return -EINVAL;
	if (request->user_size > WEFT_IOCTL_MAX_BYTES)
		return -E2BIG;
	return copy_struct_from_user(request->arg, request->size, request->user,
				     request->user_size);
}

long weft_control(const struct weft_ioctl *table, void *object, unsigned int command,
		  unsigned long user)
{
	const struct weft_ioctl *ioctl = find(table, command);
	u64 arg[WEFT_IOCTL_OWN_BYTES / sizeof(u64)];
	struct weft_request request = {.arg = arg, .user = (void __user *)user};
	int error;

	if (!ioctl)
		return -ENOTTY;
	if (ioctl->privileged && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	request.size = _IOC_SIZE(ioctl->command);
	if (WARN_ON_ONCE(request.size > sizeof(arg)))
		return -EINVAL;
	error = copy_in(&request);
	return error ? error : ioctl->run(object, &request);
}

int weft_control_answer(const struct weft_request *request)
{
	const size_t skip = sizeof(u32), have = min(request->size, request->user_size);

	if (have <= skip)
		return 0;
	return copy_to_user(request->user + skip, request->arg + skip, have - skip) ? -EFAULT : 0;
}

bool weft_is_zero(const u64 *words, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (words[i])
			return false;
	return true;
}
