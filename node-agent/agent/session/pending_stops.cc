// SPDX-License-Identifier: Apache-2.0
// See pending_stops.h.
#include "node-agent/agent/session/pending_stops.h"

#include "node-agent/agent/base/limits.h"

namespace weft::agent {

uint64_t PendingStops::AskForSync(int64_t now_ns) {
  asked_ns_ = now_ns;
  return next_sync_++;
}

std::vector<uint64_t> PendingStops::TakeLate(int64_t now_ns) {
  std::vector<uint64_t> late;
  if (now_ns - asked_ns_ < std::chrono::nanoseconds(kSyncPatience).count()) return late;
  for (const auto& [channel, sync] : sync_of_)
    if (stopped_early_.insert(channel).second) late.push_back(channel);
  return late;
}

std::vector<uint64_t> PendingStops::Answered(uint64_t sync) const {
  std::vector<uint64_t> channels;
  for (const auto& [channel, waits_for] : sync_of_)
    if (waits_for <= sync) channels.push_back(channel);
  return channels;
}

void PendingStops::Remove(uint64_t channel) {
  sync_of_.erase(channel);
  stopped_early_.erase(channel);
}

}  // namespace weft::agent
