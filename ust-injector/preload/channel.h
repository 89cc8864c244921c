// SPDX-License-Identifier: Apache-2.0
// The channels of this process: the configuration of each, from the rule set in which the process
// first met it, and the descriptions of the events used in it. ring_set.h has its ring set;
// channel_table.h tells which entry belongs to which channel of the rule set.
//
// Written on the slow path, under weft_lock. Any thread that found a channel in a decision reads
// `contexts`, `max_record` and `slots` without the lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_
#define WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_

#include "lib/abi/event.h"
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
  uint32_t memory_pages;                     // memory_budget of control.h, in pages; 0: any
  uint8_t* descriptions;                     // private, so that a fork child keeps its parent's ids
  const struct weft_context_plan* contexts;  // NULL: none
  // The result of weft_ring_set_slots: NULL, or slots_for_rseq slots and the atomic one. It is not
  // in the anchor, because decisions point to it. A fork child follows them, too, and finds no
  // slots there until it has its own ring set's.
  struct weft_writer_slots* slots;
  uint32_t slots_for_rseq;
  const uint32_t *vpids, *vuids;  // trackers
  uint32_t vpid_count, vuid_count;
};

extern struct weft_channel weft_channels[WEFT_MAX_CHANNELS] __attribute__((visibility("hidden")));

// Is what a rule set says of a channel within the limits of rings?
bool weft_channel_spec_is_sound(const struct weft_channel_spec* spec);

// Makes a free entry that of a channel of the rule set, whose spec is sound. False: no memory, or a
// context is not known; the entry stays free.
bool weft_channel_begin(struct weft_channel* channel, const struct weft_ruleset* rules,
                        const struct weft_channel_spec* spec);

// Returns the id of an event in a channel; -1: no room for more. Equal descriptions get equal ids,
// even after a provider was unloaded and loaded again.
int weft_channel_event(struct weft_channel* channel, const struct weft_event_desc* desc);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CHANNEL_H_
