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

// The id of an event in a channel, whose ring set, if there is one, has the description from now
// on. -1: no room for more.
int weft_channel_table_event(uint32_t channel, const struct weft_event_desc* desc);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CHANNEL_TABLE_H_
