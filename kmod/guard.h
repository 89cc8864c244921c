/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the tracer from tracing itself, and gives each running probe its own scratch memory.
 *
 * Other probes may interrupt a probe: softirqs, irqs and NMIs nest, and all of them are recorded.
 * An event that a probe itself causes on its own level (a page fault while it reads memory, a
 * kprobe in a function that it calls) would repeat without end. Such an event finds the mark of
 * its level set, and is counted as WEFT_DISCARD_NESTED.
 */
#ifndef WEFT_KMOD_GUARD_H
#define WEFT_KMOD_GUARD_H

#include <linux/percpu.h>
#include <linux/preempt.h>

#include "context.h"
#include "lib/abi/fetch.h"
#include "limits.h"

struct weft_guard {
	u8 busy[WEFT_LEVELS];
	struct weft_scratch *scratch[WEFT_LEVELS];
};

struct weft_scratch {
	struct weft_callstacks stacks;
	u8 bytes[WEFT_FETCH_MAX_BYTES]; /* segments */
};

DECLARE_PER_CPU(struct weft_guard, weft_guard);

int weft_guard_init(void);
void weft_guard_exit(void);

/* Returns 0 in a task, 1 in a softirq, 2 in an interrupt, 3 in an NMI. */
static __always_inline unsigned int weft_level(void)
{
	const unsigned int count = preempt_count();

	return !!(count & NMI_MASK) + !!(count & (NMI_MASK | HARDIRQ_MASK)) +
	       !!(count & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET));
}

/* Preemption is off from here to weft_guard_leave. The level, or negative: a probe of this level is
 * at work already. */
static __always_inline int weft_guard_enter(void)
{
	const unsigned int level = weft_level();
	u8 *busy = this_cpu_ptr(&weft_guard.busy[level]);

	if (unlikely(*busy))
		return -1;
	*busy = 1;
	barrier(); /* this CPU's interrupts must see the mark before what the probe does */
	return level;
}

static __always_inline void weft_guard_leave(int level)
{
	barrier(); /* as above */
	__this_cpu_write(weft_guard.busy[level], 0);
}

static __always_inline u8 *weft_guard_scratch(int level)
{
	return __this_cpu_read(weft_guard.scratch[level])->bytes;
}

static __always_inline struct weft_callstacks *weft_guard_stacks(int level)
{
	return &__this_cpu_read(weft_guard.scratch[level])->stacks;
}

#endif /* WEFT_KMOD_GUARD_H */
