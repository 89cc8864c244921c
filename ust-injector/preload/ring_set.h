// SPDX-License-Identifier: Apache-2.0
// This process's ring sets: made at the first enabled event, announced to the agent, never
// unmapped. Under weft_lock, except where it says otherwise.
#ifndef WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_
#define WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_

#include "ust-injector/preload/loaded_objects.h"
#include "ust-injector/preload/process.h"

// Takes the lock itself. Makes this process's ring set of the channel and announces it; also where
// there is one that only counts (its view's max_record is 0), once there is memory
// for a ring. False: none is there now, or never in this process (then `refused`).
bool weft_ring_set_make(uint32_t channel);

// Is told of each new ring set of a channel with WEFT_CHANNEL_STATEDUMP, and of the objects that
// are loaded. It is called without the lock, in the thread whose event the ring set was made for,
// before that event is recorded. It is set once, at start-up, and NULL before.
extern void (*weft_ring_set_made)(uint32_t channel, const struct weft_loaded_objects* loaded)
    __attribute__((visibility("hidden")));

// Returns the value of ring.slots for a channel with a ring set. The first call makes it; it never
// changes. NULL: there is no memory.
struct weft_writer_slots* weft_ring_set_slots(uint32_t channel);

// Counts in the channel's ring set, which exists, the events that were discarded before it did. May
// run in any thread, without the lock.
void weft_ring_set_count_pending(uint32_t channel);

// Copies descriptions that the channel got since into its ring set, if there is one.
void weft_ring_set_describe(uint32_t channel);

// Withdraws a ring set: no section begins in it any more; sections under way end as usual. May run
// in any thread, without the lock.
void weft_ring_set_withdraw(struct weft_anchor_channel* channel);

// Withdraws the ring set, so that a next one may be made.
void weft_ring_set_forget(uint32_t channel);

#endif  // WEFT_UST_INJECTOR_PRELOAD_RING_SET_H_
