// SPDX-License-Identifier: GPL-2.0-only
/* Changing a session's scope: scope.h. */
#include "scope.h"

#include <linux/err.h>
#include <linux/kernfs.h>
#include <linux/slab.h>

#include "access.h"
#include "lib/abi/kernel.h"
#include "session.h"

#define SCOPE_FIRST_BITS 4 /* eight pods; doubled where it gets half full */

/* The caller has the lock of control: nobody changes the table. */
static struct weft_scope_table *table_of(struct weft_scope *scope)
{
	return rcu_dereference_protected(scope->table, lockdep_is_held(&weft_control_lock));
}

/* Stores the id where a reader finds it. There is room. */
static void insert(struct weft_scope_table *table, u64 id)
{
	const u32 mask = (1u << table->bits) - 1;
	u32 at = hash_64(id, table->bits);

	while (table->ids[at])
		at = (at + 1) & mask;
	WRITE_ONCE(table->ids[at], id);
	table->used++;
}

/* Replaces the table by one with 1 << bits places that lacks `without`. */
static int replace(struct weft_scope *scope, u32 bits, u64 without)
{
	struct weft_scope_table *old = table_of(scope);
	struct weft_scope_table *new = kvzalloc(struct_size(new, ids, 1ul << bits), GFP_KERNEL);
	u32 i;

	if (!new)
		return -ENOMEM;
	new->bits = bits;
	new->levels = old ? old->levels : 0;
	for (i = 0; old && i < 1u << old->bits; i++)
		if (old->ids[i] && old->ids[i] != without)
			insert(new, old->ids[i]);
	if (!new->used)
		new->levels = 0;
	rcu_assign_pointer(scope->table, new);
	if (old)
		kvfree_rcu(old, rcu);
	return 0;
}

int weft_scope_add(struct weft_scope *scope, u64 id)
{
#ifdef CONFIG_CGROUPS
	struct weft_scope_table *table = table_of(scope);
	struct cgroup *cgroup;
	int level, error;

	if (table && weft_scope_find(table, id))
		return 0;
	if (table && table->used >= WEFT_KERNEL_SCOPE_MAX)
		return -ENOSPC;
	cgroup = id ? cgroup_get_from_id(id) : NULL;
	if (IS_ERR_OR_NULL(cgroup))
		return -ENOENT;
	level = cgroup->level;
	cgroup_put(cgroup);
	if (level > WEFT_SCOPE_MAX_LEVEL)
		return -EOPNOTSUPP;
	if (!table || 2 * (table->used + 1) > 1u << table->bits) {
		error = replace(scope, table ? table->bits + 1 : SCOPE_FIRST_BITS, 0);
		if (error)
			return error;
		table = table_of(scope);
	}
	insert(table, id);
	WRITE_ONCE(table->levels, table->levels | 1ull << level);
	return 0;
#else
	return -EOPNOTSUPP;
#endif
}

/* A level stays marked when its last member goes, unless all go: it only costs a look. */
int weft_scope_remove(struct weft_scope *scope, u64 id)
{
	struct weft_scope_table *table = table_of(scope);

	if (!table || !id || !weft_scope_find(table, id))
		return 0;
	return replace(scope, table->bits, id);
}

#ifdef CONFIG_CGROUPS
#define LOAD(value, from, type, member)                                                            \
	weft_load_kernel(value, (from) + offsetof(type, member), sizeof_field(type, member))

static bool load_ancestor_id(u64 *id, u64 cgroup, int level)
{
#ifdef WEFT_CGROUP_ANCESTOR_POINTERS
	u64 node;

	return weft_load_kernel(&node, cgroup + offsetof(struct cgroup, ancestors[level]), 8) &&
	       LOAD(&node, node, struct cgroup, kn) && LOAD(id, node, struct kernfs_node, id);
#else
	return weft_load_kernel(id, cgroup + offsetof(struct cgroup, ancestor_ids[level]), 8);
#endif
}
#endif

int weft_scope_has_address(const struct weft_scope *scope, u64 task)
{
#ifdef CONFIG_CGROUPS
	const struct weft_scope_table *table = rcu_dereference_check(scope->table, 1);
	u64 set, cgroup, deepest, levels, id;

	if (!LOAD(&set, task, struct task_struct, cgroups) ||
	    !LOAD(&cgroup, set, struct css_set, dfl_cgrp) ||
	    !LOAD(&deepest, cgroup, struct cgroup, level))
		return -EFAULT;
	for (levels = table ? READ_ONCE(table->levels) : 0; levels; levels &= levels - 1) {
		const u64 level = __builtin_ctzll(levels);

		if (level > deepest)
			break;
		if (!load_ancestor_id(&id, cgroup, level))
			return -EFAULT;
		if (id && weft_scope_find(table, id))
			return 1;
	}
#endif
	return 0;
}

void weft_scope_destroy(struct weft_scope *scope)
{
	kvfree(rcu_dereference_protected(scope->table, 1));
}
