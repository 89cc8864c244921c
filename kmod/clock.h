/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the clocks of lib/abi/ring.h, in any context, also in an NMI. */
#ifndef WEFT_KMOD_CLOCK_H
#define WEFT_KMOD_CLOCK_H

#include <linux/ktime.h>
#ifdef CONFIG_X86_64
#include <asm/tsc.h>
#endif

#include "lib/abi/ring.h"

/* Returns bit 1 << enum weft_clock_id for each clock that may be used now. */
static inline u32 weft_clocks(void)
{
	u32 clocks = 1u << WEFT_CLOCK_MONOTONIC;

#ifdef CONFIG_X86_64
	if (boot_cpu_has(X86_FEATURE_TSC) && tsc_khz && !check_tsc_unstable())
		clocks |= 1u << WEFT_CLOCK_TSC;
#endif
	return clocks;
}

/* May step back by a little where an NMI interrupts the update of the time; see ring.h. */
static __always_inline u64 weft_clock_monotonic(void)
{
	return ktime_get_mono_fast_ns();
}

static __always_inline u64 weft_clock_tsc(void)
{
#ifdef CONFIG_X86_64
	return rdtsc_ordered();
#else
	return 0; /* weft_clocks() does not offer it */
#endif
}

#endif /* WEFT_KMOD_CLOCK_H */
