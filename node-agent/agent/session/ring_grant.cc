// SPDX-License-Identifier: Apache-2.0
// See ring_grant.h.
#include "node-agent/agent/session/ring_grant.h"

#include <algorithm>

#include "lib/abi/ring.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

// Sub-buffers shrink to this size before their number falls: a record takes at most a quarter of
// one. Then their number falls to this one before they shrink further.
constexpr RingSize kComfortable = {.subbuf_shift = 16, .subbufs_shift = 2};
constexpr RingSize kModest = {.subbuf_shift = 14, .subbufs_shift = 1};
constexpr RingSize kLeast = {.subbuf_shift = WEFT_RING_MIN_SUBBUF_SHIFT,
                             .subbufs_shift = WEFT_RING_MIN_SUBBUFS_SHIFT};
// A process seldom runs on more CPUs at once. If the budget has no room for more slots, its library
// takes fewer, and the threads beyond them share one.
constexpr uint32_t kUsualSlots = 8;

uint64_t BytesOf(RingSize size, uint32_t slots) {
  const uint32_t all = std::min(slots, kUsualSlots) + 1;
  return weft_ring_set_bytes(sizeof(weft_ring_header) + all * sizeof(weft_slot),
                             WEFT_RING_USUAL_DESCRIPTIONS, all,
                             size.subbuf_shift + size.subbufs_shift);
}

}  // namespace

uint64_t RingBudget(uint64_t memory_limit) {
  return memory_limit / kRingPartOfMemory >> WEFT_RING_PAGE_SHIFT << WEFT_RING_PAGE_SHIFT;
}

uint64_t PooledBytes(uint64_t budget) { return budget - budget / 8; }

RingSize GrantRings(RingSize asked, uint64_t budget, uint32_t slots) {
  if (budget == 0) return asked;
  RingSize size = asked;
  const uint64_t most = PooledBytes(budget) / 2;
  for (const RingSize& floor : {kComfortable, kModest, kLeast}) {
    while (BytesOf(size, slots) > most && size.subbuf_shift > floor.subbuf_shift)
      --size.subbuf_shift;
    while (BytesOf(size, slots) > most && size.subbufs_shift > floor.subbufs_shift)
      --size.subbufs_shift;
  }
  return size;
}

std::string ToString(RingSize size) {
  const uint64_t bytes = uint64_t{1} << size.subbuf_shift;
  const bool is_mebi = bytes >= 1 << 20;
  return std::to_string(is_mebi ? bytes >> 20 : bytes >> 10) + (is_mebi ? "Mi x " : "Ki x ") +
         std::to_string(uint64_t{1} << size.subbufs_shift);
}

}  // namespace weft::agent
