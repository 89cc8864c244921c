// SPDX-License-Identifier: GPL-2.0-only
/* Calls of user functions between entry and return: uprobe_calls.h. */
#include "uprobe_calls.h"

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "limits.h"

#define BUCKET_BITS 7

struct kept {
	struct hlist_node node; /* in its bucket; unhashed: not in use */
	struct list_head age;
	const struct task_struct *task; /* a key only: it may be gone */
	unsigned long frame;
	struct weft_call call;
};

struct weft_calls {
	spinlock_t lock;
	struct list_head by_age; /* not in use first, then the oldest */
	struct hlist_head buckets[1 << BUCKET_BITS];
	struct kept kept[WEFT_URETPROBE_CALLS];
};

struct weft_calls *weft_calls_new(void)
{
	struct weft_calls *calls = kvzalloc(sizeof(*calls), GFP_KERNEL);
	unsigned int i;

	if (!calls)
		return NULL;
	spin_lock_init(&calls->lock);
	INIT_LIST_HEAD(&calls->by_age);
	for (i = 0; i < WEFT_URETPROBE_CALLS; i++)
		list_add(&calls->kept[i].age, &calls->by_age);
	return calls;
}

void weft_calls_free(struct weft_calls *calls)
{
	kvfree(calls);
}

static struct hlist_head *bucket_of(struct weft_calls *calls, unsigned long frame)
{
	return &calls->buckets[hash_64((unsigned long)current ^ frame, BUCKET_BITS)];
}

static struct kept *find(struct weft_calls *calls, unsigned long frame)
{
	struct kept *kept;

	hlist_for_each_entry (kept, bucket_of(calls, frame), node)
		if (kept->task == current && kept->frame == frame)
			return kept;
	return NULL;
}

void weft_calls_enter(struct weft_calls *calls, unsigned long frame, const struct weft_call *call)
{
	struct kept *kept;

	spin_lock(&calls->lock);
	kept = find(calls, frame);
	if (!kept) {
		kept = list_first_entry(&calls->by_age, struct kept, age);
		hlist_del_init(&kept->node);
		kept->task = current;
		kept->frame = frame;
		hlist_add_head(&kept->node, bucket_of(calls, frame));
	}
	list_move_tail(&kept->age, &calls->by_age);
	kept->call = *call;
	spin_unlock(&calls->lock);
}

bool weft_calls_leave(struct weft_calls *calls, unsigned long frame, struct weft_call *call)
{
	struct kept *kept;

	spin_lock(&calls->lock);
	kept = find(calls, frame);
	if (kept) {
		*call = kept->call;
		hlist_del_init(&kept->node);
		list_move(&kept->age, &calls->by_age);
	}
	spin_unlock(&calls->lock);
	return kept;
}
