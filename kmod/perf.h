/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The context perf:cpu: a perf counter on each CPU, which counts from the moment it was opened,
 * whatever task runs. It is read in any context, on its own CPU, without sleeping. A CPU that
 * comes online later has no counter: its value is 0.
 */
#ifndef WEFT_KMOD_PERF_H
#define WEFT_KMOD_PERF_H

#include <linux/types.h>

struct weft_perf;

/* May sleep. Returns an error pointer on failure; -EOPNOTSUPP: this machine has no such counter. */
struct weft_perf *weft_perf_open(u32 type, u64 config);
/* No reader may be left. May sleep. NULL: nothing. */
void weft_perf_close(struct weft_perf *perf);

/* Preemption is off. */
u64 weft_perf_read(const struct weft_perf *perf);

#endif /* WEFT_KMOD_PERF_H */
