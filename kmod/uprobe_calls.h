/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept from the entry of a user function until its return: the kernel does so for
 * kretprobes, not for uretprobes. A call is known by its task and by where its frame is on the
 * stack.
 *
 * A call that never returns (longjmp, exec, exit) leaves its entry behind, until another of the
 * same key or, when all are in use, the one after the oldest takes its place. Task context only;
 * locks itself.
 */
#ifndef WEFT_KMOD_UPROBE_CALLS_H
#define WEFT_KMOD_UPROBE_CALLS_H

#include <linux/types.h>

#define WEFT_CALL_REGISTERS 6 /* that hold integer arguments */

struct weft_call {
	u64 registers[WEFT_CALL_REGISTERS];
	u64 began; /* ns */
};

struct weft_calls;

struct weft_calls *weft_calls_new(void);
void weft_calls_free(struct weft_calls *calls);

/* The current task entered a call whose frame is there. */
void weft_calls_enter(struct weft_calls *calls, unsigned long frame, const struct weft_call *call);
/* It returned: *call is what was kept. False: nothing was. */
bool weft_calls_leave(struct weft_calls *calls, unsigned long frame, struct weft_call *call);

#endif /* WEFT_KMOD_UPROBE_CALLS_H */
