// SPDX-License-Identifier: Apache-2.0
// Converts names of perf counters, as LTTng 2.13 spells them ("cpu-cycles",
// "L1-dcache-load-misses", "raw:r1a8:name"), to what perf_event_open takes. Pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_PERF_COUNTERS_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_PERF_COUNTERS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::agent {

struct PerfCounter {
  uint32_t type = 0;
  uint64_t config = 0;
};

std::optional<PerfCounter> FindPerfCounter(std::string_view name);

// Can libweft.so read it at all (ust-injector/preload/perf.h)? If not, its values are always 0.
bool IsReadable(const PerfCounter& counter);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_PERF_COUNTERS_H_
