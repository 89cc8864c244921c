// SPDX-License-Identifier: GPL-2.0-only
/* Taking call stacks: callstack.h. */
#include "callstack.h"

#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#include "access.h"

#if WEFT_HAS_CALLSTACKS
void weft_callstack_kernel(struct weft_callstack *stack)
{
	unsigned long *addresses = (unsigned long *)stack->addresses;
	u32 own = 0;

	stack->count = stack_trace_save(addresses, WEFT_CONTEXT_MAX_ADDRESSES, 0);
	while (own < stack->count && within_module(addresses[own], THIS_MODULE))
		own++;
	stack->count -= own;
	memmove(stack->addresses, stack->addresses + own, stack->count * sizeof(u64));
}

/* Words that a function with a frame pointer pushes first. */
struct frame {
	u64 next;
	u64 from;
};

void weft_callstack_user(struct weft_callstack *stack)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct frame frame;
	u64 at;

	stack->count = 0;
	if (in_nmi() || !weft_user_is_mapped() || !user_mode(regs))
		return;
	stack->addresses[stack->count++] = regs->ip;
	if (regs->cs != __USER_CS)
		return; /* 32 bits: another form of frames */
	for (at = regs->bp; stack->count < WEFT_CONTEXT_MAX_ADDRESSES; at = frame.next) {
		if ((at & 7) || at < regs->sp ||
		    !weft_copy_memory(&frame, at, sizeof(frame), true) || !frame.from)
			return;
		stack->addresses[stack->count++] = frame.from;
		if (frame.next <= at)
			return;
	}
}
#else
void weft_callstack_kernel(struct weft_callstack *stack)
{
	stack->count = 0;
}

void weft_callstack_user(struct weft_callstack *stack)
{
	stack->count = 0;
}
#endif
