/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whom a session records: tasks whose cgroup (v2), or an ancestor of it, is in a set of cgroup ids.
 *
 * A probe asks for each level of the hierarchy that any member of the set stands on, so for one or
 * two (pods are all equally deep), whether the task's ancestor there is a member: the cost does not
 * grow with the number of pods. Probes read a table under RCU (preemption is off in them); changes
 * are made under the lock of control, in place where a reader cannot be misled, else in a new
 * table.
 */
#ifndef WEFT_KMOD_SCOPE_H
#define WEFT_KMOD_SCOPE_H

#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/rcupdate.h>

#include "compat.h"

struct weft_scope_table {
	struct rcu_head rcu;
	u64 levels; /* bit n: a member stands on level n */
	u32 bits;   /* 1 << bits places */
	u32 used;
	u64 ids[]; /* open addressing; 0: free, since no cgroup has the id 0 */
};

struct weft_scope {
	struct weft_scope_table __rcu *table; /* NULL: nobody */
};

/* Deeper cgroups than this cannot be members. */
#define WEFT_SCOPE_MAX_LEVEL 63

/* 0; -ENOENT: no such cgroup; -ENOSPC, -ENOMEM, -EOPNOTSUPP. */
int weft_scope_add(struct weft_scope *scope, u64 id);
int weft_scope_remove(struct weft_scope *scope, u64 id);
/* No reader may be left. */
void weft_scope_destroy(struct weft_scope *scope);

static __always_inline bool weft_scope_find(const struct weft_scope_table *table, u64 id)
{
	const u32 mask = (1u << table->bits) - 1;
	u32 at = hash_64(id, table->bits);

	for (;; at = (at + 1) & mask) {
		const u64 found = READ_ONCE(table->ids[at]);

		if (found == id)
			return true;
		if (!found)
			return false;
	}
}

/* Is the task, which lives at least as long as this call, in the scope? Preemption is off. */
static __always_inline bool weft_scope_has(const struct weft_scope *scope, struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	const struct weft_scope_table *table = rcu_dereference_check(scope->table, 1);
	struct cgroup *cgroup;
	u64 levels;

	if (!table)
		return false;
	cgroup = task_css_set_check(task, true)->dfl_cgrp;
	for (levels = READ_ONCE(table->levels); levels; levels &= levels - 1) {
		const int level = __builtin_ctzll(levels);

		if (level > cgroup->level)
			return false;
		if (weft_scope_find(table, weft_cgroup_ancestor_id(cgroup, level)))
			return true;
	}
#endif
	return false;
}

/* The same of what an argument of a tracepoint says is a task: it may be anything (NULL, an error).
 * 1, 0, or -EFAULT: it is no task. Preemption is off. */
int weft_scope_has_address(const struct weft_scope *scope, u64 task);

#endif /* WEFT_KMOD_SCOPE_H */
