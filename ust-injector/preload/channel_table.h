// SPDX-License-Identifier: Apache-2.0
// Maps channels of the rule set to entries of weft_channels, with their ring sets. An entry whose
// channel is no longer in force goes to the next channel that needs one.
//
// All functions belong to the slow path, under weft_lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CHANNEL_TABLE_H_
#define WEFT_UST_INJECTOR_PRELOAD_CHANNEL_TABLE_H_

#include "ust-injector/preload/channel.h"

// Index in weft_channels of the rule set's channel number `n`, known or made now; -1: no room.
int weft_channel_table_find(const struct weft_ruleset* rules, uint32_t n);

// Returns the id of an event in a channel; -1: no room for more. The channel's ring set, if there
// is one, has the description from now on.
int weft_channel_table_event(uint32_t channel, const struct weft_event_desc* desc);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CHANNEL_TABLE_H_
