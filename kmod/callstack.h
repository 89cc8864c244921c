/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call stacks of the current task: return addresses, the innermost first. They are taken before a
 * record is reserved, since they determine its length. Called in any context with preemption off;
 * nothing here sleeps.
 *
 * The kernel's stack comes from the kernel's own unwinder, without this module's functions. The
 * user's stack begins where the task entered the kernel and follows its frame pointers (code that
 * was built without them has none), as far as the memory is resident. In an NMI the user's stack
 * is empty, since the NMI may have come while the kernel switched memory.
 */
#ifndef WEFT_KMOD_CALLSTACK_H
#define WEFT_KMOD_CALLSTACK_H

#include <linux/types.h>

#include "lib/abi/context.h"

struct weft_callstack {
	u32 count;
	u64 addresses[WEFT_CONTEXT_MAX_ADDRESSES];
};

/* Whether weft.ko can take call stacks on this machine. */
#if defined(CONFIG_X86_64) && defined(CONFIG_STACKTRACE)
#define WEFT_HAS_CALLSTACKS 1
#else
#define WEFT_HAS_CALLSTACKS 0
#endif

void weft_callstack_kernel(struct weft_callstack *stack);
void weft_callstack_user(struct weft_callstack *stack);

#endif /* WEFT_KMOD_CALLSTACK_H */
