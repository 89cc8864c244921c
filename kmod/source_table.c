// SPDX-License-Identifier: GPL-2.0-only
/* The sources of events: source_table.h. */
#include "source_table.h"

#include "kprobe.h"
#include "statedump.h"
#include "syscall.h"
#include "tracepoint.h"
#include "uprobe.h"

static const struct weft_event_source *const sources[] = {
	[WEFT_KERNEL_TRACEPOINT] = &weft_tracepoint_source,
	[WEFT_KERNEL_SYSCALL_ENTRY] = &weft_syscall_source,
	[WEFT_KERNEL_SYSCALL_EXIT] = &weft_syscall_source,
	[WEFT_KERNEL_KPROBE] = &weft_kprobe_source,
	[WEFT_KERNEL_KRETPROBE] = &weft_kprobe_source,
	[WEFT_KERNEL_UPROBE] = &weft_uprobe_source,
	[WEFT_KERNEL_URETPROBE] = &weft_uprobe_source,
	[WEFT_KERNEL_STATE] = &weft_statedump_source,
};

const struct weft_event_source *weft_source_of(u32 kind)
{
	return kind < ARRAY_SIZE(sources) ? sources[kind] : NULL;
}

u32 weft_source_features(void)
{
	u32 features = 0, kind;

	for (kind = 0; kind < ARRAY_SIZE(sources); kind++)
		if (sources[kind])
			features |= sources[kind]->features;
	return features;
}

void weft_sources_exit(void)
{
	u32 kind;

	for (kind = 0; kind < ARRAY_SIZE(sources); kind++)
		if (sources[kind] && sources[kind]->exit)
			sources[kind]->exit();
}
