// SPDX-License-Identifier: GPL-2.0-only
/* Changing a session's scope: scope.h. */
#include "scope.h"

#include <linux/err.h>
#include <linux/kernfs.h>

#include "access.h"
#include "lib/abi/kernel.h"

int weft_scope_add(struct weft_scope *scope, u64 id)
{
#ifdef CONFIG_CGROUPS
	struct weft_id_set *set = weft_id_set_of(&scope->cgroups);
	struct cgroup *cgroup;
	int level, error;

	/* 0, which no cgroup has, is how the set knows its free places. */
	if (!id)
		return -ENOENT;
	if (set && weft_id_set_has(set, id))
		return 0;
	cgroup = weft_cgroup_get_from_id(id);
	if (IS_ERR_OR_NULL(cgroup))
		return -ENOENT;
	level = cgroup->level;
	cgroup_put(cgroup);
	if (level > WEFT_SCOPE_MAX_LEVEL)
		return -EOPNOTSUPP;
	error = weft_id_set_add(&scope->cgroups, id, WEFT_KERNEL_SCOPE_MAX);
	if (error)
		return error;
	set = weft_id_set_of(&scope->cgroups);
	WRITE_ONCE(set->mark, set->mark | 1ull << level);
	return 0;
#else
	return -EOPNOTSUPP;
#endif
}

/* Tells probes that the scope was narrowed. The store comes after the change. */
static void narrow(struct weft_scope *scope)
{
	smp_store_release(&scope->narrowed, scope->narrowed + 1);
}

/* A level stays marked when its last member goes, unless all go: it only costs a look. */
int weft_scope_remove(struct weft_scope *scope, u64 id)
{
	const int error = weft_id_set_remove(&scope->cgroups, id);

	narrow(scope);
	return error;
}

int weft_scope_track(struct weft_scope *scope, const struct weft_kernel_track *arg)
{
	const int error = weft_trackers_change(&scope->trackers, arg);

	narrow(scope);
	return error;
}

#ifdef CONFIG_CGROUPS
bool weft_scope_has_somewhere(const struct weft_scope *scope, struct task_struct *task)
{
	const struct weft_id_set *table = rcu_dereference_check(scope->cgroups, 1);
	const struct cgroup *cgroup = task_css_set_check(task, true)->dfl_cgrp;
	u64 levels;

	for (levels = READ_ONCE(table->mark); levels; levels &= levels - 1) {
		const int level = __builtin_ctzll(levels);

		if (level > cgroup->level)
			return false;
		if (weft_id_set_has(table, weft_cgroup_ancestor_id(cgroup, level)))
			return true;
	}
	return false;
}
#endif

bool weft_scope_wants_tracked(const struct weft_scope *scope)
{
	return weft_scope_has(scope, current) && weft_trackers_have(&scope->trackers);
}

bool weft_scope_wants_address(const struct weft_scope *scope, u64 task)
{
	return (scope->all || weft_scope_has_address(scope, task) > 0) &&
	       weft_trackers_have_address(&scope->trackers, task);
}

#ifdef CONFIG_CGROUPS
static bool load_ancestor_id(u64 *id, u64 cgroup, int level)
{
#ifdef WEFT_CGROUP_ANCESTOR_POINTERS
	u64 node;

	return weft_load_kernel(&node, cgroup + offsetof(struct cgroup, ancestors[level]), 8) &&
	       WEFT_LOAD_MEMBER(&node, node, struct cgroup, kn) &&
	       WEFT_LOAD_MEMBER(id, node, struct kernfs_node, id);
#else
	return weft_load_kernel(id, cgroup + offsetof(struct cgroup, ancestor_ids[level]), 8);
#endif
}
#endif

int weft_scope_has_address(const struct weft_scope *scope, u64 task)
{
#ifdef CONFIG_CGROUPS
	const struct weft_id_set *table = rcu_dereference_check(scope->cgroups, 1);
	u64 set, cgroup, deepest, levels, id;

	if (!WEFT_LOAD_MEMBER(&set, task, struct task_struct, cgroups) ||
	    !WEFT_LOAD_MEMBER(&cgroup, set, struct css_set, dfl_cgrp) ||
	    !WEFT_LOAD_MEMBER(&deepest, cgroup, struct cgroup, level))
		return -EFAULT;
	for (levels = table ? READ_ONCE(table->mark) : 0; levels; levels &= levels - 1) {
		const u64 level = __builtin_ctzll(levels);

		if (level > deepest)
			break;
		if (!load_ancestor_id(&id, cgroup, level))
			return -EFAULT;
		if (id && weft_id_set_has(table, id))
			return 1;
	}
#endif
	return 0;
}

void weft_scope_destroy(struct weft_scope *scope)
{
	weft_id_set_destroy(&scope->cgroups);
	weft_trackers_destroy(&scope->trackers);
}
