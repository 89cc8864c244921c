/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A perf counter on each CPU, counting since it was opened, whatever runs: the context perf:cpu.
 * Read in any context, from its own CPU, without sleeping. A CPU that comes online later has none:
 * its value is 0.
 */
#ifndef WEFT_KMOD_PERF_H
#define WEFT_KMOD_PERF_H

#include <linux/types.h>

struct weft_perf;

/* May sleep. Or an error: -EOPNOTSUPP: this machine has no such counter. */
struct weft_perf *weft_perf_open(u32 type, u64 config);
/* No reader may be left. May sleep. NULL: nothing. */
void weft_perf_close(struct weft_perf *perf);

/* Preemption is off. */
u64 weft_perf_read(const struct weft_perf *perf);

#endif /* WEFT_KMOD_PERF_H */
