/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scope of a session: tasks whose cgroup (v2), or an ancestor of it, is in a set of cgroup
 * ids.
 *
 * For each level of the hierarchy on which the set has members, a probe looks whether the task's
 * ancestor on that level is a member. All pods are equally deep, so there are one or two such
 * levels, and the cost does not grow with the number of pods. Trackers (track.h) may narrow the
 * scope further.
 */
#ifndef WEFT_KMOD_SCOPE_H
#define WEFT_KMOD_SCOPE_H

#include <linux/cgroup.h>

#include "compat.h"
#include "track.h"

struct weft_scope {
	struct weft_id_set __rcu
		*cgroups; /* mark: bit n: a member stands on level n. NULL: no task */
	struct weft_trackers trackers;
	bool all;     /* without cgroups: all tasks, but for trackers */
	u32 narrowed; /* grows whenever a task may have left the scope */
};

/* Cgroups deeper than this cannot be members. */
#define WEFT_SCOPE_MAX_LEVEL 63

/* Returns 0; -ENOENT: no such cgroup; -ENOSPC, -ENOMEM, -EOPNOTSUPP. */
int weft_scope_add(struct weft_scope *scope, u64 id);
int weft_scope_remove(struct weft_scope *scope, u64 id);
/* As weft_trackers_change. */
int weft_scope_track(struct weft_scope *scope, const struct weft_kernel_track *arg);
/* No reader may be left. */
void weft_scope_destroy(struct weft_scope *scope);

#ifdef CONFIG_CGROUPS
/* The part of weft_scope_has for members on several levels. It starts again from the beginning, so
 * that the usual path keeps no values across the call. */
bool weft_scope_has_somewhere(const struct weft_scope *scope, struct task_struct *task);
#endif

/* Is the task, which lives at least as long as this call, in the scope? Preemption is off. */
static __always_inline bool weft_scope_has(const struct weft_scope *scope, struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	const struct weft_id_set *table = rcu_dereference_check(scope->cgroups, 1);
	const struct cgroup *cgroup;
	u64 levels;
	int level;

	if (!table)
		return scope->all;
	cgroup = task_css_set_check(task, true)->dfl_cgrp;
	levels = READ_ONCE(table->mark);
	if (!levels)
		return false;
	level = __builtin_ctzll(levels);
	if (level > cgroup->level)
		return false;
	if (weft_id_set_has(table, weft_cgroup_ancestor_id(cgroup, level)))
		return true;
	return unlikely(levels & (levels - 1)) && weft_scope_has_somewhere(scope, task);
#else
	return scope->all;
#endif
}

bool weft_scope_wants_tracked(const struct weft_scope *scope);

/* Is what concerns the current task recorded: is it in the scope, and do trackers have it? */
static __always_inline bool weft_scope_wants(const struct weft_scope *scope)
{
	if (unlikely(READ_ONCE(scope->trackers.kinds)))
		return weft_scope_wants_tracked(scope);
	return weft_scope_has(scope, current);
}

/* Like weft_scope_wants, for an argument of a tracepoint that should point to a task. It may be any
 * value (NULL, an error pointer). Preemption is off. */
bool weft_scope_wants_address(const struct weft_scope *scope, u64 task);

/* Is it in the scope? 1, 0, or -EFAULT: it is no task. Preemption is off. */
int weft_scope_has_address(const struct weft_scope *scope, u64 task);

#endif /* WEFT_KMOD_SCOPE_H */
