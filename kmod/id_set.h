/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of ids for probes: open addressing, where one look is nearly always enough. Probes read
 * under RCU (they run with preemption off). Changes are made under the lock of control: in place
 * if this cannot mislead a reader, else in a new set.
 */
#ifndef WEFT_KMOD_ID_SET_H
#define WEFT_KMOD_ID_SET_H

#include <linux/hash.h>
#include <linux/rcupdate.h>

struct weft_id_set {
	struct rcu_head rcu;
	u64 mark;  /* the owner's; kept when the set grows, 0 when it is empty */
	u32 shift; /* makes a place of a hash */
	u32 mask;  /* number of places - 1 */
	u32 used;
	u64 ids[]; /* 0: free: no id is 0 */
};

/* The caller has the lock of control. NULL is the empty set. Adding an existing value, or removing
 * a missing one, changes nothing. Returns 0; -ENOSPC: the set has `most` values; -ENOMEM. */
int weft_id_set_add(struct weft_id_set __rcu **set, u64 id, u32 most);
int weft_id_set_remove(struct weft_id_set __rcu **set, u64 id);
struct weft_id_set *weft_id_set_of(struct weft_id_set __rcu *const *set);
/* No reader may be left. */
void weft_id_set_destroy(struct weft_id_set __rcu **set);

static __always_inline u32 weft_id_set_place(const struct weft_id_set *set, u64 id)
{
	return (id * GOLDEN_RATIO_64) >> set->shift;
}

/* A probe's. Nearly always the first place decides. */
static __always_inline bool weft_id_set_has(const struct weft_id_set *set, u64 id)
{
	u32 at = weft_id_set_place(set, id);

	for (;; at = (at + 1) & set->mask) {
		const u64 found = READ_ONCE(set->ids[at]);

		if (found == id)
			return true;
		if (likely(!found))
			return false;
	}
}

#endif /* WEFT_KMOD_ID_SET_H */
