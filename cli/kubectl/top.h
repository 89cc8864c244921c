// SPDX-License-Identifier: Apache-2.0
// What `kubectl weft top` shows: rates of Traces and their pods, as a table or JSON. Thread-safety:
// pure functions.
#ifndef WEFT_CLI_KUBECTL_TOP_H_
#define WEFT_CLI_KUBECTL_TOP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/kubectl/relay_client.h"
#include "lib/kube/json.h"

namespace weft::kubectl {

// Seconds that a rate is the average of: long enough for a steady figure, as nodes report losses
// only every second or so.
inline constexpr int kRateSeconds = 5;

struct TraceRates {
  std::string name;
  std::string phase;
  std::vector<RelayRates> pods;
};

RelayCounts Sum(const std::vector<RelayRates>& pods, RelayCounts RelayRates::* counts);

// A line for each Trace and, below it, one for each pod, the busiest first. `most`: lines at most;
// the last one then tells how many are left out.
std::string TopTable(std::vector<TraceRates> traces, std::size_t most);

kube::Json TopJson(const std::string& name_space, const std::vector<TraceRates>& traces);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TOP_H_
