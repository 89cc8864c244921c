// SPDX-License-Identifier: GPL-2.0-only
/* Changing a session's scope: scope.h. */
#include "scope.h"

#include <linux/err.h>
#include <linux/slab.h>

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

void weft_scope_destroy(struct weft_scope *scope)
{
	kvfree(rcu_dereference_protected(scope->table, 1));
}
