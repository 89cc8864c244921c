// SPDX-License-Identifier: Apache-2.0
// The rules and filters that shall be in force, as the agent holds them, and their encoding in a
// control area (lib/abi/control.h). Thread-safety: plain values, pure functions.
#ifndef WEFT_LIB_CONTROL_RULESET_H_
#define WEFT_LIB_CONTROL_RULESET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/abi/context.h"
#include "lib/abi/control.h"
#include "lib/abi/filter.h"
#include "lib/base/result.h"

namespace weft::control {

struct ContextSpec {
  uint16_t id = 0;
  std::string name;  // of perf counters and application contexts, else ""
  uint32_t perf_type = 0;
  uint64_t perf_config = 0;
  bool operator==(const ContextSpec&) const = default;
};

struct RuleSpec {
  std::string pattern;  // star pattern over "provider:event"
  std::vector<std::string> exclusions;
  int32_t loglevel_min = INT32_MIN;
  int32_t loglevel_max = INT32_MAX;
  std::vector<uint8_t> filter;  // a program of lib/abi/filter.h; empty: none
  bool operator==(const RuleSpec&) const = default;
};

struct ChannelSpec {
  uint64_t id = 0;
  weft_ring_mode mode = WEFT_RING_DISCARD;
  uint32_t subbuf_shift = 19;
  uint32_t subbufs_shift = 2;
  uint32_t flags = 0;
  uint64_t memory_budget = 0;  // bytes for all rings of the container; 0: any
  std::vector<ContextSpec> contexts;
  std::vector<uint32_t> vpids;
  std::vector<uint32_t> vuids;
  std::vector<RuleSpec> rules;
  bool operator==(const ChannelSpec&) const = default;
};

// Encodes the rule set of a generation. kLimit: it has more of something than lib/abi/control.h
// allows; the message names it. kInvalid: a string contains a NUL, or a channel has no id.
Result<std::vector<uint8_t>> EncodeRuleset(uint32_t generation,
                                           const std::vector<ChannelSpec>& channels);

// Returns which of the WEFT_CONTROL_WORDS enable words the rules concern: a name without a wildcard
// concerns one word, other names all of them.
std::vector<bool> ConcernedWords(const std::vector<ChannelSpec>& channels);

// Has it a `*` that is not quoted? If not, `*literal` (may be null) is the one name it matches.
bool HasWildcard(const std::string& pattern, std::string* literal = nullptr);

}  // namespace weft::control

#endif  // WEFT_LIB_CONTROL_RULESET_H_
