// SPDX-License-Identifier: Apache-2.0
// See late_ring.h.
#include "node-agent/agent/discovery/late_ring.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/ring/ring_set.h"
#include "lib/ring/slot_reader.h"

namespace weft::agent {
namespace {

// A wait that replaces the global barrier if the kernel has none: longer than any writer's section.
constexpr useconds_t kWithoutBarrierUs = 20'000;
// How long to wait for the owner of the atomic slot. An honest owner makes no system call under the
// lock. One that takes longer is dead or stopped, and commits nothing, or it lies.
constexpr useconds_t kLockStepUs = 1'000;
constexpr int kLockSteps = 200;

// A ring set whose head of the atomic slot is final once this owner is seen gone.
struct Owned {
  const ring::RingSet* set = nullptr;
  uint64_t owner = 0;
};

uint64_t LoadOwner(const ring::RingSet& set) { return set.LoadLock(set.geometry().slot_count - 1); }

void WaitForOwners(std::vector<Owned> waiting) {
  const auto is_final = [](const Owned& one) {
    return one.owner == 0 || LoadOwner(*one.set) != one.owner;
  };
  for (int i = 0; i < kLockSteps; ++i) {
    std::erase_if(waiting, is_final);
    if (waiting.empty()) return;
    usleep(kLockStepUs);
  }
}

Result<ring::RingSet> Close(LateRing late) {
  WEFT_ASSIGN(ring::RingSet set, ring::RingSet::Open(std::move(late.fd)));
  if (set.geometry().slot_count != late.slot_count)
    return Fail(ErrorCode::kCorrupt, "ring: its number of slots has changed");
  set.StoreClosed();
  return set;
}

RingTotals CountClosed(const ring::RingSet& set) {
  RingTotals totals{.channel_id = set.geometry().channel_id,
                    .instance = set.geometry().instance,
                    .slot_count = set.geometry().slot_count};
  for (uint32_t slot = 0; slot < set.geometry().slot_count; ++slot) {
    ring::SlotReader reader(set, slot);
    if (!reader.Look()) continue;
    totals.recorded += reader.CountCommitted();
    const auto discarded = set.LoadDiscarded(slot);
    for (uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i) totals.discarded[i] += discarded[i];
  }
  return totals;
}

}  // namespace

Result<RingTotals> IdentifyRing(const UniqueFd& fd) {
  WEFT_ASSIGN(const ring::Geometry geometry, ring::ReadGeometry(fd.get()));
  return RingTotals{.channel_id = geometry.channel_id,
                    .instance = geometry.instance,
                    .slot_count = geometry.slot_count};
}

std::vector<Result<RingTotals>> CloseAndCount(std::vector<LateRing> rings) {
  std::vector<Result<ring::RingSet>> sets;
  sets.reserve(rings.size());
  for (LateRing& late : rings) sets.push_back(Close(std::move(late)));
  if (!ring::CloseBarrier()) usleep(kWithoutBarrierUs);
  std::vector<Owned> owned;
  for (const auto& set : sets)
    if (set) owned.push_back({&*set, LoadOwner(*set)});
  WaitForOwners(std::move(owned));
  std::vector<Result<RingTotals>> totals;
  totals.reserve(sets.size());
  for (const auto& set : sets) {
    if (set)
      totals.emplace_back(CountClosed(*set));
    else
      totals.emplace_back(std::unexpected(set.error()));
  }
  return totals;
}

}  // namespace weft::agent
