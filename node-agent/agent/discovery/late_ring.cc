// SPDX-License-Identifier: Apache-2.0
// See late_ring.h.
#include "node-agent/agent/discovery/late_ring.h"

#include <unistd.h>

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

// Head is final once closed was stored and then the lock was seen free. Returns false if it may not
// be: the lock has an owner, and no wait is left.
bool WaitForLock(const ring::RingSet& set, TokenBucket& waits) {
  const uint32_t slot = set.geometry().slot_count - 1;
  const uint64_t owner = set.LoadLock(slot);
  if (owner == 0) return true;
  if (!waits.Take(TokenBucket::Clock::now())) return false;
  for (int i = 0; i < kLockSteps && set.LoadLock(slot) == owner; ++i) usleep(kLockStepUs);
  return true;
}

}  // namespace

Result<RingTotals> IdentifyRing(const UniqueFd& fd) {
  WEFT_ASSIGN(const ring::Geometry geometry, ring::ReadGeometry(fd.get()));
  return RingTotals{.channel_id = geometry.channel_id, .instance = geometry.instance};
}

Result<RingTotals> CloseAndCount(UniqueFd fd, TokenBucket& waits) {
  WEFT_ASSIGN(ring::RingSet set, ring::RingSet::Open(std::move(fd)));
  set.StoreClosed();
  if (!ring::CloseBarrier()) usleep(kWithoutBarrierUs);
  RingTotals totals{.channel_id = set.geometry().channel_id, .instance = set.geometry().instance};
  totals.is_final = WaitForLock(set, waits);
  for (uint32_t slot = 0; slot < set.geometry().slot_count; ++slot) {
    ring::SlotReader reader(set, slot);
    if (!reader.Look()) continue;
    totals.recorded += reader.CountCommitted();
    const auto discarded = set.LoadDiscarded(slot);
    for (uint32_t i = 0; i < WEFT_DISCARD_REASONS; ++i) totals.discarded[i] += discarded[i];
  }
  return totals;
}

}  // namespace weft::agent
