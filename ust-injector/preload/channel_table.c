// SPDX-License-Identifier: Apache-2.0
// See channel_table.h.
#include "ust-injector/preload/channel_table.h"

#include "ust-injector/preload/ring_set.h"
#include "ust-injector/preload/rules.h"

static bool is_in_rules(const struct weft_ruleset* rules, uint64_t id) {
  for (uint32_t i = 0; i < rules->channel_count; ++i) {
    if (weft_rules_channels(rules)[i].id == id) return true;
  }
  return false;
}

// Returns a free entry, or that of a channel that is no longer in force. Its memory stays mapped: a
// thread may still be on its way into it (the agent frees the pages).
static int free_entry(const struct weft_ruleset* rules) {
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id == 0) return i;
  }
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (!is_in_rules(rules, weft_channels[i].id)) {
      weft_ring_set_forget((uint32_t)i);
      weft_channels[i].id = 0;
      return i;
    }
  }
  return -1;
}

int weft_channel_table_find(const struct weft_ruleset* rules, uint32_t n) {
  if (n >= rules->channel_count) return -1;
  const struct weft_channel_spec* spec = weft_rules_channels(rules) + n;
  if (!weft_channel_spec_is_sound(spec)) return -1;
  for (int i = 0; i < (int)WEFT_MAX_CHANNELS; ++i) {
    if (weft_channels[i].id == spec->id) return i;
  }
  const int at = free_entry(rules);
  return at >= 0 && weft_channel_begin(&weft_channels[at], rules, spec) ? at : -1;
}

int weft_channel_table_event(uint32_t channel, const struct weft_event_desc* desc) {
  const int id = weft_channel_event(&weft_channels[channel], desc);
  if (id >= 0) weft_ring_set_describe(channel);
  return id;
}
