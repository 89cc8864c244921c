// SPDX-License-Identifier: Apache-2.0
// The state dump: events with the addresses of the process's objects, so that readers can give
// names to addresses (the context `ip`, call stacks). Names and fields are LTTng-UST 2.13's,
// provider lttng_ust_statedump: start, procname, per object bin_info and build_id, end. Readers
// that know these (babeltrace2's debug-info) need only the contexts vpid and ip besides.
//
// They are recorded like any other event, if a rule matches them and the agent has set
// WEFT_CHANNEL_STATEDUMP: into a ring set that was just made, before the event for which it was
// made; and into existing ring sets when an object with tracepoints was loaded later. The caller
// does not hold weft_lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_
#define WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_

#include "ust-injector/preload/loaded_objects.h"

// At start-up, on the only thread: describes the events.
void weft_statedump_start(void);

// Records the list in one channel.
void weft_statedump(uint32_t channel, const struct weft_loaded_objects* list);

// Records what is loaded now, in all channels that want it and have a ring set. Costs almost
// nothing if there is no such channel.
void weft_statedump_again(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_H_
