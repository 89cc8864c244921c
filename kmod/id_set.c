// SPDX-License-Identifier: GPL-2.0-only
/* Changing sets of ids: id_set.h. */
#include "id_set.h"

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "control.h"

#define FIRST_PLACES                                                                               \
	32 /* enough for eight pods; doubled when a quarter is full, so that collisions stay rare */

struct weft_id_set *weft_id_set_of(struct weft_id_set __rcu *const *set)
{
	return rcu_dereference_protected(*set, lockdep_is_held(&weft_control_lock));
}

/* Stores the id where a reader finds it. There is room. */
static void insert(struct weft_id_set *set, u64 id)
{
	u32 at = weft_id_set_place(set, id);

	while (set->ids[at])
		at = (at + 1) & set->mask;
	WRITE_ONCE(set->ids[at], id);
	set->used++;
}

/* Replaces the set by one with `places` places, a power of two, and without the id `without`. */
static int replace(struct weft_id_set __rcu **set, u32 places, u64 without)
{
	struct weft_id_set *old = weft_id_set_of(set);
	struct weft_id_set *new = kvzalloc(struct_size(new, ids, places), GFP_KERNEL);
	u32 i;

	if (!new)
		return -ENOMEM;
	new->shift = 64 - ilog2(places);
	new->mask = places - 1;
	new->mark = old ? old->mark : 0;
	for (i = 0; old && i <= old->mask; i++)
		if (old->ids[i] && old->ids[i] != without)
			insert(new, old->ids[i]);
	if (!new->used)
		new->mark = 0;
	rcu_assign_pointer(*set, new);
	if (old)
		kvfree_rcu(old, rcu);
	return 0;
}

int weft_id_set_add(struct weft_id_set __rcu **place, u64 id, u32 most)
{
	struct weft_id_set *set = weft_id_set_of(place);
	int error;

	if (set && weft_id_set_has(set, id))
		return 0;
	if (set && set->used >= most)
		return -ENOSPC;
	if (!set || 4 * (set->used + 1) > set->mask + 1) {
		error = replace(place, set ? 2 * (set->mask + 1) : FIRST_PLACES, 0);
		if (error)
			return error;
	}
	insert(weft_id_set_of(place), id);
	return 0;
}

int weft_id_set_remove(struct weft_id_set __rcu **place, u64 id)
{
	struct weft_id_set *set = weft_id_set_of(place);

	if (!set || !id || !weft_id_set_has(set, id))
		return 0;
	return replace(place, set->mask + 1, id);
}

void weft_id_set_destroy(struct weft_id_set __rcu **set)
{
	kvfree(rcu_dereference_protected(*set, 1));
}
