// SPDX-License-Identifier: Apache-2.0
// Channels that were turned off while ring sets of theirs may still be on their way. Their consumer
// is told to stop when the keeper has answered the Sync that was asked for after they were turned
// off: every ring set that was announced before is known then.
//
// A channel's way:  Add -> (TakeLate, where the Sync takes long: the consumer stops early, once) ->
//                   Answered -> Remove
//
// Invariants:
//   1. A channel waits for the last Sync that was requested after its last Add.
//   2. A channel that was not added does not wait, and is not stopped early.
// It is a plain value that reads no clock; the agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_PENDING_STOPS_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_PENDING_STOPS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace weft::agent {

class PendingStops {
 public:
  // Makes the channel wait for the Sync that is requested next.
  void Add(uint64_t channel) { sync_of_[channel] = next_sync_; }
  // Returns the number of the Sync to ask for now.
  uint64_t AskForSync(int64_t now_ns);

  [[nodiscard]] bool Waits(uint64_t channel) const { return sync_of_.contains(channel); }
  // Does it wait, and was its consumer not yet told to stop early?
  [[nodiscard]] bool IsUntold(uint64_t channel) const {
    return Waits(channel) && !stopped_early_.contains(channel);
  }

  // Returns the channels that have waited longer than kSyncPatience for the last Sync, each once.
  // Such a Sync waits for descriptors; channels that are read to their end give some back.
  std::vector<uint64_t> TakeLate(int64_t now_ns);
  // Returns the channels that wait for this Sync or an earlier one.
  [[nodiscard]] std::vector<uint64_t> Answered(uint64_t sync) const;
  void Remove(uint64_t channel);

 private:
  uint64_t next_sync_ = 1;
  int64_t asked_ns_ = 0;  // CLOCK_MONOTONIC: when the last Sync was asked for
  std::map<uint64_t, uint64_t> sync_of_;
  std::set<uint64_t> stopped_early_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_PENDING_STOPS_H_
