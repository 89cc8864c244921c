// SPDX-License-Identifier: Apache-2.0
// This process's ring sets: made at the first enabled event, announced to the agent, never
// unmapped. Under weft_lock, except where it says otherwise.
#ifndef WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_
#define WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_

#include "ust-injector/preload/channel.h"

// Copies descriptions that the channel got since into its ring set, if there is one.
void weft_ring_set_describe(uint32_t channel);

// Any thread, without the lock: no section begins any more in the ring set; those under way end as
// ever.
void weft_ring_set_withdraw(struct weft_anchor_channel* channel);

// The same, and a next ring set may be made.
void weft_ring_set_forget(uint32_t channel);

#endif  // WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_
