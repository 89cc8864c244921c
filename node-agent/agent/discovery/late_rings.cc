// SPDX-License-Identifier: Apache-2.0
// See late_rings.h.
#include "node-agent/agent/discovery/late_rings.h"

#include <memory>

#include "node-agent/agent/base/limits.h"

namespace weft::agent {

// Half of the room is for one consumer, so that none takes all of it.
bool LateRings::HasRoom(const std::string& consumer) const {
  const auto own = waiting_.find(consumer);
  const size_t waiting = own == waiting_.end() ? 0 : own->second.size();
  return unkept_ < most_unkept_ && waiting < most_unkept_ / 2;
}

void LateRings::Add(const std::string& consumer, Late late, UniqueFd ring) {
  if (!names_.emplace(late.channel_id, late.instance).second) return;
  unkept_ += late.key.empty() ? 1 : 0;
  waiting_[consumer].push_back({std::move(late), std::move(ring)});
}

LateRings::Batch LateRings::TakeBatch() {
  Batch batch;
  size_t slots = 0;
  auto next = waiting_.begin();
  while (!waiting_.empty() && batch.late.size() < kMaxLateRingsAtOnce) {
    if (next == waiting_.end()) next = waiting_.begin();
    std::deque<Waiting>& own = next->second;
    const uint32_t slot_count = own.front().late.slot_count;
    slots += slot_count;
    if (!batch.late.empty() && slots > kMaxLateSlotsAtOnce) break;
    batch.rings.push_back({std::move(own.front().ring), slot_count});
    batch.late.push_back(std::move(own.front().late));
    own.pop_front();
    next = own.empty() ? waiting_.erase(next) : std::next(next);
  }
  return batch;
}

void LateRings::CountSome() {
  if (is_counting_ || waiting_.empty()) return;
  is_counting_ = true;
  Batch batch = TakeBatch();
  auto rings = std::make_shared<std::vector<LateRing>>(std::move(batch.rings));
  calls_.Start([rings] { return Result<Totals>(CloseAndCount(std::move(*rings))); },
               [this, late = std::move(batch.late)](Result<Totals> totals) mutable {
                 is_counting_ = false;
                 Finish(std::move(late), std::move(totals));
               });
}

void LateRings::CountSomeNow() {
  Batch batch = TakeBatch();
  Finish(std::move(batch.late), CloseAndCount(std::move(batch.rings)));
}

void LateRings::Finish(std::vector<Late> batch, Result<Totals> totals) {
  std::vector<Counted> counted;
  for (size_t i = 0; i < batch.size(); ++i) {
    names_.erase({batch[i].channel_id, batch[i].instance});
    unkept_ -= batch[i].key.empty() ? 1 : 0;
    counted.push_back(
        {std::move(batch[i]), totals ? std::move((*totals)[i]) : std::unexpected(totals.error())});
  }
  counted_(std::move(counted));
}

}  // namespace weft::agent
