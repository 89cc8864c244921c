/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts (lib/abi/context.h) of the current task: recorded in front of the payload, and for
 * filters. Read in any context; nothing here takes a lock or reads memory that could fault.
 */
#ifndef WEFT_KMOD_CONTEXT_H
#define WEFT_KMOD_CONTEXT_H

#include "lib/abi/kernel.h"
#include "lib/event/filter.h"

struct weft_contexts {
	u32 count;
	u32 bytes; /* in a record */
	u16 ids[WEFT_KERNEL_MAX_CONTEXTS];
	u8 sizes[WEFT_KERNEL_MAX_CONTEXTS]; /* 4, 8, or that of a text */
};

/* Takes over a list from user space. 0; -EINVAL: broken, or twice the same; -EOPNOTSUPP: one that
 * is not here. */
int weft_contexts_init(struct weft_contexts *contexts, const struct weft_context_spec *specs,
		       u32 count);

/* For whom contexts are: what a probe knows beside the task. Passed by value, as the argument of
 * weft_filter_run too. */
enum weft_context_view {
	WEFT_VIEW_TRACEPOINT = 1 << 0, /* not a kprobe */
	WEFT_VIEW_OTHER = 1 << 1, /* the current task is not in scope: nothing of it is shown */
};

/* Writes all values; returns what is behind them. */
u8 *weft_contexts_write(const struct weft_contexts *contexts, u8 *to, unsigned long view);

/* The value of a context that is an integer. */
u64 weft_context_value(u16 id, unsigned long view);
/* Text of one that is not, NUL-terminated; it may change while it is read. */
const char *weft_context_text(u16 id, unsigned long view);

/* For filters. */
extern const struct weft_filter_contexts weft_filter_contexts;

#endif /* WEFT_KMOD_CONTEXT_H */
