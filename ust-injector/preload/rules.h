// SPDX-License-Identifier: Apache-2.0
// The rule set in force: a private copy of the control area's, checked once for each change, so
// that the library uses exactly what it checked. All functions belong to the slow path, under
// weft_lock.
#ifndef WEFT_UST_INJECTOR_PRELOAD_RULES_H_
#define WEFT_UST_INJECTOR_PRELOAD_RULES_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/abi/control.h"

// Returns the rule set in force; NULL: there is none, or the agent is changing it right now. Valid
// until the next call. Its checksum and its two tables, of channels and of rules, are checked; the
// functions below check what these refer to.
const struct weft_ruleset* weft_rules(void);

// Does a channel of the rule set in force have this flag (enum weft_channel_flag)? Reads the
// control area in place, without the copy that weft_rules makes, so a process that starts makes no
// system call for it. While the agent publishes another set, the answer may be either one's.
bool weft_rules_have_flag(uint32_t flag);

// Returns the text at an offset of the rule set; NULL: it does not end inside.
const char* weft_rules_text(const struct weft_ruleset* rules, uint32_t offset);

// Is a table of `count` entries of `size` bytes at this offset aligned, and does it end inside?
bool weft_rules_contain(const struct weft_ruleset* rules, uint32_t offset, uint64_t count,
                        uint64_t size);

// Returns the rule set's channels.
static inline const struct weft_channel_spec* weft_rules_channels(
    const struct weft_ruleset* rules) {
  return (const struct weft_channel_spec*)((const char*)rules + rules->channels_offset);
}

#endif  // WEFT_UST_INJECTOR_PRELOAD_RULES_H_
