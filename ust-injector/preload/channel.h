// SPDX-License-Identifier: Apache-2.0
// The channels of this process: the rule set in force (copied from the control area), what each
// channel wants, the descriptions of the events used in it, and its ring set.
//
// All functions are the slow path's, under weft_lock, except where it says otherwise.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_
#define WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_

#include "lib/abi/context.h"
#include "ust-injector/preload/process.h"

#define WEFT_DESCRIPTIONS_BYTES (256u * 1024u) /* per channel, sparse */

struct weft_context_plan;

struct weft_channel {
  uint64_t id;  // of control.h; 0: free entry
  uint32_t mode;
  uint32_t subbuf_shift;
  uint32_t subbufs_shift;
  uint32_t flags;
  uint32_t max_record;                       // bytes of the largest record that its rings take
  uint32_t event_count;                      // ids 0 .. event_count - 1 are given
  uint32_t descriptions_used;                // bytes of `descriptions`, which a new ring set copies
  uint8_t* descriptions;                     // private, so that a fork child keeps its parent's ids
  const struct weft_context_plan* contexts;  // NULL: none
  // weft_channel_slots: NULL, or of slots_for_rseq slots and the atomic one. Not in the anchor:
  // decisions lead to it, also in a fork child, which finds no slots there until it has its own
  // ring set's.
  struct weft_writer_slots* slots;
  uint32_t slots_for_rseq;
  const uint32_t *vpids, *vuids;  // trackers
  uint32_t vpid_count, vuid_count;
};

extern struct weft_channel weft_channels[WEFT_MAX_CHANNELS] __attribute__((visibility("hidden")));

// The rule set in force, checked, or NULL: none, or the agent is changing it right now. Valid until
// the next call.
const struct weft_ruleset* weft_rules(void);

// Text at an offset of the rule set, or NULL if it does not end inside.
const char* weft_rules_text(const struct weft_ruleset* rules, uint32_t offset);

// Index in weft_channels of the rule set's channel number `n`, known or made now; -1: no room.
int weft_channel_of(const struct weft_ruleset* rules, uint32_t n);

// The id of an event in a channel; the same bytes get the same id, also when a provider was
// unloaded and loaded again. -1: no room for more.
int weft_channel_event(uint32_t channel, const struct weft_event_desc* desc);

// What ring.slots is while the channel has a ring set: made at the first call, never again. NULL:
// there is no memory.
struct weft_writer_slots* weft_channel_slots(uint32_t channel);

// Takes the lock itself. Makes this process's ring set of the channel and announces it. False: not
// now, or never in this process (then anchor->channels[channel].refused).
bool weft_channel_make_ring(uint32_t channel);

// Any thread: counts in the channel's ring set, which is there, what was discarded before it was.
void weft_channel_count_pending(uint32_t channel);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_
