/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps values from the entry of a user function until its return. The kernel does this for
 * kretprobes, but not for uretprobes. The task and the address of the frame on its stack identify
 * a call.
 *
 * A call that never returns (longjmp, exec, exit) leaves its entry behind. A later call with an
 * equal key takes its place. When all entries are in use, a new call takes that of the oldest one.
 * Functions run in task context only and lock themselves.
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

/* Keeps a call that the current task entered with this frame. */
void weft_calls_enter(struct weft_calls *calls, unsigned long frame, const struct weft_call *call);
/* It returned: *call is what was kept. False: nothing was. */
bool weft_calls_leave(struct weft_calls *calls, unsigned long frame, struct weft_call *call);

#endif /* WEFT_KMOD_UPROBE_CALLS_H */
