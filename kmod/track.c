// SPDX-License-Identifier: GPL-2.0-only
/* Trackers: track.h. */
#include "track.h"

#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "access.h"
#include "context.h"

int weft_trackers_change(struct weft_trackers *trackers, const struct weft_kernel_track *arg)
{
	struct weft_id_set __rcu **set;
	const struct weft_id_set *now;
	int error;

	if (!arg->kind || arg->kind >= WEFT_KERNEL_TRACK_KINDS || arg->value > U32_MAX)
		return -EINVAL;
	set = &trackers->sets[arg->kind];
	switch (arg->change) {
	case WEFT_KERNEL_TRACK_ADD:
		error = weft_id_set_add(set, arg->value + 1, WEFT_KERNEL_TRACK_MAX);
		break;
	case WEFT_KERNEL_TRACK_REMOVE:
		error = weft_id_set_remove(set, arg->value + 1);
		break;
	default:
		error = -EINVAL;
	}
	now = weft_id_set_of(set);
	/* A set that gets its first value is there before the kind counts. */
	if (now && now->used)
		smp_store_release(&trackers->kinds, trackers->kinds | 1u << arg->kind);
	else
		WRITE_ONCE(trackers->kinds, trackers->kinds & ~(1u << arg->kind));
	return error;
}

void weft_trackers_destroy(struct weft_trackers *trackers)
{
	u32 kind;

	for (kind = 0; kind < WEFT_KERNEL_TRACK_KINDS; kind++)
		weft_id_set_destroy(&trackers->sets[kind]);
}

static bool has(const struct weft_trackers *trackers, u32 kind, u64 value)
{
	const struct weft_id_set *set = rcu_dereference_check(trackers->sets[kind], 1);

	return set && weft_id_set_has(set, value + 1);
}

static u64 own_value(u32 kind)
{
	static const u8 contexts[WEFT_KERNEL_TRACK_KINDS] = {
		[WEFT_KERNEL_TRACK_PID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PID),
		[WEFT_KERNEL_TRACK_VPID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VPID),
		[WEFT_KERNEL_TRACK_UID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_UID),
		[WEFT_KERNEL_TRACK_VUID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VUID),
		[WEFT_KERNEL_TRACK_GID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_GID),
		[WEFT_KERNEL_TRACK_VGID] = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VGID),
	};

	return (u32)weft_context_value(contexts[kind], 0);
}

bool weft_trackers_have(const struct weft_trackers *trackers)
{
	u32 kinds = READ_ONCE(trackers->kinds);

	for (; kinds; kinds &= kinds - 1) {
		const u32 kind = __builtin_ctz(kinds);

		if (!has(trackers, kind, own_value(kind)))
			return false;
	}
	return true;
}

static bool load_vpid(u64 *value, u64 task)
{
	u64 group, pid, level;

	return WEFT_LOAD_MEMBER(&group, task, struct task_struct, signal) &&
	       WEFT_LOAD_MEMBER(&pid, group, struct signal_struct, pids[PIDTYPE_TGID]) &&
	       WEFT_LOAD_MEMBER(&level, pid, struct pid, level) &&
	       weft_load_kernel(value,
				pid + offsetof(struct pid, numbers) +
					(u32)level * sizeof(struct upid) +
					offsetof(struct upid, nr),
				sizeof(int));
}

/* *value, an id of the kernel's, becomes what it is in the namespace whose map lies there. */
static bool map_up(u64 *value, u64 map)
{
	u64 count, first, lower, size;
	u32 i;

	if (!WEFT_LOAD_MEMBER(&count, map, struct uid_gid_map, nr_extents) ||
	    count > UID_GID_MAP_MAX_BASE_EXTENTS)
		return false;
	for (i = 0; i < count; i++) {
		const u64 extent = map + offsetof(struct uid_gid_map, extent) +
				   i * sizeof(struct uid_gid_extent);

		if (!WEFT_LOAD_MEMBER(&first, extent, struct uid_gid_extent, first) ||
		    !WEFT_LOAD_MEMBER(&lower, extent, struct uid_gid_extent, lower_first) ||
		    !WEFT_LOAD_MEMBER(&size, extent, struct uid_gid_extent, count))
			return false;
		if (*value - lower < size) {
			*value = first + (*value - lower);
			return true;
		}
	}
	return false;
}

static bool load_user(u32 kind, u64 *value, u64 task)
{
	const bool group = kind == WEFT_KERNEL_TRACK_GID || kind == WEFT_KERNEL_TRACK_VGID;
	u64 cred, space;

	if (!WEFT_LOAD_MEMBER(&cred, task, struct task_struct, cred) ||
	    !(group ? WEFT_LOAD_MEMBER(value, cred, struct cred, gid)
		    : WEFT_LOAD_MEMBER(value, cred, struct cred, uid)))
		return false;
	if (kind == WEFT_KERNEL_TRACK_UID || kind == WEFT_KERNEL_TRACK_GID)
		return true;
	if (!WEFT_LOAD_MEMBER(&space, cred, struct cred, user_ns))
		return false;
	return map_up(value, space + (group ? offsetof(struct user_namespace, gid_map)
					    : offsetof(struct user_namespace, uid_map)));
}

static bool load(u32 kind, u64 *value, u64 task)
{
	if (kind == WEFT_KERNEL_TRACK_PID)
		return WEFT_LOAD_MEMBER(value, task, struct task_struct, tgid);
	if (kind == WEFT_KERNEL_TRACK_VPID)
		return load_vpid(value, task);
	return load_user(kind, value, task);
}

bool weft_trackers_have_address(const struct weft_trackers *trackers, u64 task)
{
	u32 kinds = READ_ONCE(trackers->kinds);

	for (; kinds; kinds &= kinds - 1) {
		const u32 kind = __builtin_ctz(kinds);
		u64 value;

		if (!load(kind, &value, task) || !has(trackers, kind, value))
			return false;
	}
	return true;
}
