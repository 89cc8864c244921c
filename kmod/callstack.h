/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call stacks of the current task: return addresses, the innermost first. Taken before a record is
 * reserved, since they say how long it is. Any context, preemption off; nothing here sleeps.
 *
 * The kernel's: by the kernel's own unwinder, without what is this module's. The user's: where it
 * entered the kernel, then along its frame pointers (code built without them has none), and only
 * what is resident; nothing of an NMI, which may have come while memory is being switched.
 */
#ifndef WEFT_KMOD_CALLSTACK_H
#define WEFT_KMOD_CALLSTACK_H

#include <linux/types.h>

#include "lib/abi/context.h"

struct weft_callstack {
	u32 count;
	u64 addresses[WEFT_CONTEXT_MAX_ADDRESSES];
};

/* A machine on which it is known how. */
#if defined(CONFIG_X86_64) && defined(CONFIG_STACKTRACE)
#define WEFT_HAS_CALLSTACKS 1
#else
#define WEFT_HAS_CALLSTACKS 0
#endif

void weft_callstack_kernel(struct weft_callstack *stack);
void weft_callstack_user(struct weft_callstack *stack);

#endif /* WEFT_KMOD_CALLSTACK_H */
