/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control: the requests of user space (ioctls, and closed descriptors), and the one place that
 * dispatches ioctls. Control is rare, and most of it waits for probes, so one lock serves all of
 * it. Probes never take that lock.
 *
 * Each kind of descriptor has a table of its ioctls. Structs of ioctls (lib/abi/kernel.h) begin
 * with their size as the caller knows it, and may be shorter or longer than the module's.
 */
#ifndef WEFT_KMOD_CONTROL_H
#define WEFT_KMOD_CONTROL_H

#include <linux/mutex.h>
#include <linux/types.h>

extern struct mutex weft_control_lock;

/* One call of an ioctl. */
struct weft_request {
	void *arg;	   /* the module's copy of the struct */
	void __user *user; /* the caller's struct */
	u32 size;	   /* of the module's struct */
	u32 user_size;	   /* as the caller knows it */
};

struct weft_ioctl {
	unsigned int command; /* WEFT_IOCTL_... */
	bool privileged;      /* the caller needs CAP_SYS_ADMIN */
	/* `object`: what the descriptor stands for. Returns the ioctl's result. */
	long (*run)(void *object, struct weft_request *request);
};

/* Runs the ioctl `command` of `table`, which ends with an empty row. Before that the caller's
 * struct is copied: members that the caller does not have are zero, those that the module does not
 * have must be. Returns the row's result, -ENOTTY if there is no such row, -EPERM, -EFAULT,
 * -EINVAL or -E2BIG. */
long weft_control(const struct weft_ioctl *table, void *object, unsigned int command,
		  unsigned long user);

/* Copies the request's struct back, as much of it as the caller has. Its size stays the caller's.
 * 0 or -EFAULT. */
int weft_control_answer(const struct weft_request *request);

/* Are these reserved words zero? */
bool weft_is_zero(const u64 *words, unsigned int count);

#endif /* WEFT_KMOD_CONTROL_H */
