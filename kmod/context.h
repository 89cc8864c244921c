/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts (lib/abi/context.h) of the current task, for records and for filters. They are read in
 * any context; nothing here takes a lock or reads memory that could fault.
 */
#ifndef WEFT_KMOD_CONTEXT_H
#define WEFT_KMOD_CONTEXT_H

#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>

#include "callstack.h"
#include "lib/abi/kernel.h"
#include "lib/event/filter.h"

struct weft_perf;

/* How the bytes behind the last pointer become a value. */
enum weft_context_end {
	WEFT_CONTEXT_END_NONE, /* not in this kernel */
	WEFT_CONTEXT_END_S32,
	WEFT_CONTEXT_END_U32,
	WEFT_CONTEXT_END_U64,
	WEFT_CONTEXT_END_PID,	    /* struct pid: its number in its own, innermost namespace */
	WEFT_CONTEXT_END_PID_SPACE, /* struct pid: that namespace's inode number */
	WEFT_CONTEXT_END_CALL,	    /* weft_context_call */
	WEFT_CONTEXT_END_TEXT,	    /* weft_context_text */
	WEFT_CONTEXT_END_STACK,	    /* callstack.h; records only */
	WEFT_CONTEXT_END_PERF,	    /* perf.h; records only */
};

/*
 * The way to a context's value. It starts at the current task and follows `steps` pointers, each at
 * an offset in the struct that the one before points to. The value is at the last offset in the
 * last struct. If a pointer is NULL, the value is 0. Values are found this way, and not by a
 * function each, since an event asks for several, and kernels are built without jump tables: a
 * search for the function costs more than the value.
 */
struct weft_context_path {
	u8 end; /* enum weft_context_end */
	u8 steps;
	bool of_task; /* it says something of the task, and not only of the machine */
	u16 offsets[4];
} __aligned(16); /* a place is found by a shift */

/* Paths are found by a context's place. */
#define WEFT_CONTEXT_PLACES	  64
#define WEFT_CONTEXT_KERNEL_PLACE 32
extern const struct weft_context_path weft_context_paths[WEFT_CONTEXT_PLACES];

#define WEFT_CONTEXT_PLACE(id)                                                                     \
	((id) < WEFT_CONTEXT_FIRST_KERNEL                                                          \
		 ? (id)                                                                            \
		 : (id) - WEFT_CONTEXT_FIRST_KERNEL + WEFT_CONTEXT_KERNEL_PLACE)

struct weft_contexts {
	u32 count;
	u32 bytes; /* in a record; of call stacks only their counts */
	u8 places[WEFT_KERNEL_MAX_CONTEXTS];
	u8 sizes[WEFT_KERNEL_MAX_CONTEXTS]; /* 4, 8, or that of a text */
	bool kernel_stack, user_stack;
	struct weft_perf *perf[WEFT_KERNEL_MAX_CONTEXTS]; /* NULL: no counter */
};

/* Call stacks of one event. */
struct weft_callstacks {
	struct weft_callstack kernel, user;
};

/* Takes over a list from user space. Returns 0; -EINVAL: the list is malformed or has a context
 * twice; -EOPNOTSUPP: this kernel lacks one; or perf's error. The caller calls
 * weft_contexts_destroy whatever this returns. May sleep. */
int weft_contexts_init(struct weft_contexts *contexts, const struct weft_context_spec *specs,
		       u32 count);

void weft_contexts_destroy(struct weft_contexts *contexts);

/* What a probe knows about a hit, besides the current task: it decides which values the record may
 * show. Passed by value, as the argument of weft_filter_run too. */
enum weft_context_view {
	WEFT_VIEW_TRACEPOINT = 1 << 0, /* not a kprobe */
	WEFT_VIEW_OTHER = 1 << 1, /* the current task is not in scope: nothing of it is shown */
};

static __always_inline bool weft_contexts_have_stacks(const struct weft_contexts *contexts)
{
	return contexts->kernel_stack || contexts->user_stack;
}

/* Takes the call stacks that the list wants, and returns the bytes that they add to a record. A
 * task that is not in scope yields empty stacks. */
u32 weft_contexts_take_stacks(const struct weft_contexts *contexts, struct weft_callstacks *stacks,
			      unsigned long view);

/* Writes all values and returns the address behind them. `stacks`: from weft_contexts_take_stacks;
 * NULL: the list has none. */
u8 *weft_contexts_write(const struct weft_contexts *contexts, u8 *to, unsigned long view,
			const struct weft_callstacks *stacks);

/* Returns the value of a context whose path ends in a call. */
u64 weft_context_call(unsigned int place, unsigned long view);
/* Text of one that is a text, NUL-terminated; it may change while it is read. */
const char *weft_context_text(unsigned int place, unsigned long view);

/* Returns the value of a context that is an integer, sign-extended. */
static __always_inline u64 weft_context_value(unsigned int place, unsigned long view)
{
	const struct weft_context_path *path = &weft_context_paths[place];
	const u16 *offset = path->offsets;
	const u8 *at = (const u8 *)current;
	const struct pid *pid;
	unsigned int steps;

	if (unlikely(view & WEFT_VIEW_OTHER) && path->of_task)
		return 0;
	for (steps = path->steps; steps; steps--) {
		at = READ_ONCE(*(const u8 *const *)(at + *offset++));
		if (unlikely(!at))
			return 0;
	}
	if (path->end == WEFT_CONTEXT_END_S32)
		return (s64) * (const s32 *)(at + *offset);
	if (path->end == WEFT_CONTEXT_END_U32)
		return *(const u32 *)(at + *offset);
	pid = (const struct pid *)at;
	if (path->end == WEFT_CONTEXT_END_PID)
		return pid->numbers[pid->level].nr;
	if (path->end == WEFT_CONTEXT_END_PID_SPACE)
		return pid->numbers[pid->level].ns->ns.inum;
	if (path->end == WEFT_CONTEXT_END_U64)
		return *(const u64 *)(at + *offset);
	return weft_context_call(place, view);
}

/* For filters. */
extern const struct weft_filter_contexts weft_filter_contexts;

#endif /* WEFT_KMOD_CONTEXT_H */
