// SPDX-License-Identifier: Apache-2.0
// See trace_rates.h.
#include "relay/rates/trace_rates.h"

#include <algorithm>

namespace weft::relay_rates {

void TraceRates::Pod::MoveTo(std::uint64_t second) {
  if (second <= last) return;
  const std::uint64_t passed = std::min<std::uint64_t>(second - last, seconds.size());
  for (std::uint64_t i = 0; i < passed; i++) seconds[(second - i) % seconds.size()] = {};
  last = second;
}

std::uint64_t TraceRates::Second() const {
  const auto since = now_().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(since).count());
}

bool TraceRates::MakeRoom(std::uint64_t now) {
  if (count_ < kMaxPods) return true;
  for (auto trace = traces_.begin(); trace != traces_.end();) {
    count_ -= std::erase_if(trace->second,
                            [now](const auto& pod) { return pod.second.last + kSeconds < now; });
    trace = trace->second.empty() ? traces_.erase(trace) : std::next(trace);
  }
  return count_ < kMaxPods;
}

void TraceRates::Add(const std::string& trace, const std::string& pod, const Counts& more) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = Second();
  auto found = traces_.find(trace);
  if (found == traces_.end() || !found->second.contains(pod)) {
    if (!MakeRoom(now)) return;
    found = traces_.try_emplace(trace).first;
    found->second[pod].last = now;
    count_++;
  }
  Pod& entry = found->second[pod];
  entry.MoveTo(now);
  entry.total += more;
  entry.seconds[now % entry.seconds.size()] += more;
}

std::vector<PodRates> TraceRates::Of(const std::string& trace, std::size_t seconds) const {
  const std::lock_guard lock(mutex_);
  std::vector<PodRates> rates;
  const auto found = traces_.find(trace);
  if (found == traces_.end()) return rates;
  const std::uint64_t now = Second();
  for (const auto& [name, pod] : found->second) {
    PodRates one{.pod = name, .total = pod.total, .seconds = {}};
    for (std::uint64_t back = std::min(seconds, kSeconds); back > 0; back--) {
      // Behind `last` the places are those of older seconds.
      const std::uint64_t second = now - back;
      const bool is_known = second <= pod.last && second + kSeconds >= pod.last;
      one.seconds.push_back(is_known ? pod.seconds[second % pod.seconds.size()] : Counts{});
    }
    rates.push_back(std::move(one));
  }
  return rates;
}

}  // namespace weft::relay_rates
