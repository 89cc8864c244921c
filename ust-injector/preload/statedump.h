// SPDX-License-Identifier: Apache-2.0
// The state dump: events that say which objects lie where in the process, so that addresses (the
// context `ip`, call stacks) can be given names later. Names and fields are LTTng-UST 2.13's,
// provider lttng_ust_statedump: start, procname, per object bin_info and build_id, end; readers
// that know those (babeltrace2's debug-info) need no more than the contexts vpid and ip.
//
// Recorded as any other event, where a rule matches it and the agent has set
// WEFT_CHANNEL_STATEDUMP: into a ring set that was just made, before the event for which it was
// made; and into those that are there when an object with tracepoints was loaded later. Not under
// weft_lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_
#define WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_

#include "ust-injector/preload/loaded_objects.h"

// At start-up, on the only thread: describes the events.
void weft_statedump_start(void);

// Records the list in one channel.
void weft_statedump(uint32_t channel, const struct weft_loaded_objects* list);

// Records what is loaded now, in all channels that want it and have a ring set. Nearly free where
// none does.
void weft_statedump_again(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_
