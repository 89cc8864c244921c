/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structs of ioctls between user space and here (lib/abi/kernel.h): each begins with its size as
 * the caller knows it, and may be shorter or longer than ours.
 */
#ifndef WEFT_KMOD_UAPI_H
#define WEFT_KMOD_UAPI_H

#include <linux/uaccess.h>

#include "limits.h"
#include "lib/abi/kernel.h"

/* Copies a struct in: what the caller does not have is zero, what we do not know must be.
 * *user_size is the size as the caller knows it. 0, -EFAULT, -EINVAL, -E2BIG. */
static inline int weft_copy_in(void *to, size_t size, const void __user *from, u32 *user_size)
{
	if (get_user(*user_size, (const u32 __user *)from))
		return -EFAULT;
	if (*user_size < sizeof(u32))
		return -EINVAL;
	if (*user_size > WEFT_IOCTL_MAX_BYTES)
		return -E2BIG;
	return copy_struct_from_user(to, size, from, *user_size);
}

/* Copies a struct out, as much of it as the caller has; its size stays the caller's. */
static inline int weft_copy_out(void __user *to, const void *from, size_t size, u32 user_size)
{
	const size_t skip = sizeof(u32), have = min_t(size_t, size, user_size);

	if (have <= skip)
		return 0;
	return copy_to_user(to + skip, from + skip, have - skip) ? -EFAULT : 0;
}

/* Is this one of our ioctls? The size bits mean nothing: the struct says its size itself. */
static inline bool weft_ioctl_is_ours(unsigned int cmd)
{
	return _IOC_TYPE(cmd) == WEFT_KERNEL_IOC;
}

static inline bool weft_is_zero(const u64 *words, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (words[i])
			return false;
	return true;
}

#endif /* WEFT_KMOD_UAPI_H */
