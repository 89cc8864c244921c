/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trackers narrow a session to tasks with certain ids (WEFT_IOCTL_TRACK). There is one set for
 * each kind of id; a kind without values does not narrow. The cost is one look for each kind that
 * has values, however many values it has. Without trackers there is no cost (scope.h).
 */
#ifndef WEFT_KMOD_TRACK_H
#define WEFT_KMOD_TRACK_H

#include "id_set.h"
#include "lib/abi/kernel.h"

struct weft_trackers {
	u32 kinds; /* bit n: enum weft_kernel_track_kind n has values */
	/* hold values + 1: 0 is root's id */
	struct weft_id_set __rcu *sets[WEFT_KERNEL_TRACK_KINDS];
};

/* The caller has the lock of control. Returns 0; -EINVAL: no such kind or change, or an invalid
 * value; -ENOSPC; -ENOMEM. */
int weft_trackers_change(struct weft_trackers *trackers, const struct weft_kernel_track *arg);
/* No reader may be left. */
void weft_trackers_destroy(struct weft_trackers *trackers);

/* Has the current task, for each kind with values, one of these? Preemption is off. */
bool weft_trackers_have(const struct weft_trackers *trackers);
/* Like weft_trackers_have, for an address that should be a task's but may be any value. The uid of
 * a namespace with more than five ranges is unknown here. */
bool weft_trackers_have_address(const struct weft_trackers *trackers, u64 task);

#endif /* WEFT_KMOD_TRACK_H */
