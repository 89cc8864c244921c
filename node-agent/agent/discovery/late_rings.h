// SPDX-License-Identifier: Apache-2.0
// Ring sets that no consumer will read, until their events are counted. Counting one takes a fifth
// of a second if its process lies about the lock of its atomic slot, and a process can announce
// ring sets without end. Therefore a thread counts many of them at once, and the agent's loop does
// not wait for it, unless descriptors are short. Each batch takes ring sets of all consumers
// (namespaces) in turn, so that none waits behind all those of another.
//
// Invariants:
//   1. At most one batch is under way in the thread; each is bounded in ring sets and in slots.
//   2. A ring set is here from Add until `counted` gets it.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RINGS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RINGS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/loop.h"
#include "node-agent/agent/base/background_calls.h"
#include "node-agent/agent/discovery/late_ring.h"

namespace weft::agent {

class LateRings {
 public:
  struct Late {
    uint64_t channel_id = 0;
    uint64_t instance = 0;
    uint32_t slot_count = 0;
    std::string key;  // the keeper's name for it; "": the keeper does not have it
    const char* reason = "";
  };
  struct Counted {
    Late late;
    Result<RingTotals> totals;
  };
  using Done = std::function<void(std::vector<Counted>)>;

  LateRings(ipc::Loop& loop, Done counted) : calls_(loop, 1), counted_(std::move(counted)) {}

  // Returns false if no more ring sets of this consumer can be held that the keeper does not have.
  // What the keeper has is bounded there.
  [[nodiscard]] bool HasRoom(const std::string& consumer) const;
  [[nodiscard]] bool Has(uint64_t channel_id, uint64_t instance) const {
    return names_.contains({channel_id, instance});
  }
  void Add(const std::string& consumer, Late late, UniqueFd ring);
  // Begins a batch, if there is work and none is under way.
  void CountSome();
  // Counts a batch of those that wait before it returns, which takes 0.2 s at most.
  void CountSomeNow();

 private:
  struct Waiting {
    Late late;
    UniqueFd ring;
  };
  struct Batch {
    std::vector<LateRing> rings;
    std::vector<Late> late;
  };
  using Totals = std::vector<Result<RingTotals>>;
  Batch TakeBatch();
  void Finish(std::vector<Late> batch, Result<Totals> totals);

  BackgroundCalls<Totals> calls_;
  const Done counted_;
  const size_t most_unkept_ = ipc::BudgetOf(ipc::DescriptorLimit()).rings;
  std::map<std::string, std::deque<Waiting>> waiting_;  // by consumer; none is empty
  std::set<std::pair<uint64_t, uint64_t>> names_;
  size_t unkept_ = 0;  // of names_: without a key
  bool is_counting_ = false;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RINGS_H_
