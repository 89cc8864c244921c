// SPDX-License-Identifier: Apache-2.0
// What containers get of the buffers that a Trace asks for.
#include "node-agent/agent/session/ring_grant.h"

#include <gtest/gtest.h>

#include "lib/abi/ring.h"

namespace weft::agent {
namespace {

constexpr uint64_t kMi = 1 << 20;
constexpr RingSize kExample{.subbuf_shift = 20, .subbufs_shift = 3};  // 1Mi x 8

TEST(RingGrant, ABudgetIsATwentiethOfTheLimit) {
  EXPECT_EQ(RingBudget(0), 0U);
  EXPECT_EQ(RingBudget(16 * kMi), 204U * 4096);
  EXPECT_EQ(RingBudget(4096), 0U);
}

TEST(RingGrant, WithoutALimitTheTraceGetsWhatItAsksFor) {
  EXPECT_EQ(GrantRings(kExample, 0, 2), kExample);
  EXPECT_EQ(GrantRings(kExample, RingBudget(uint64_t{4} << 30), 2), kExample);
}

TEST(RingGrant, SubBuffersShrinkBeforeTheirNumberDoes) {
  EXPECT_EQ(ToString(GrantRings(kExample, RingBudget(512 * kMi), 2)), "256Ki x 8");
  EXPECT_EQ(ToString(GrantRings(kExample, RingBudget(128 * kMi), 2)), "64Ki x 8");
  EXPECT_EQ(ToString(GrantRings(kExample, RingBudget(32 * kMi), 2)), "32Ki x 4");
  EXPECT_EQ(ToString(GrantRings(kExample, RingBudget(16 * kMi), 2)), "16Ki x 4");
  EXPECT_EQ(ToString(GrantRings(kExample, RingBudget(6 * kMi), 2)), "16Ki x 2");
}

// Tries every size that a Trace may ask for, limits from those of the smallest pods on, and few and
// many CPUs.
TEST(RingGrant, AFirstRingSetTakesAtMostHalfOfThePool) {
  for (uint32_t subbuf = WEFT_RING_MIN_SUBBUF_SHIFT; subbuf <= 26; ++subbuf) {
    for (uint32_t subbufs = WEFT_RING_MIN_SUBBUFS_SHIFT; subbufs <= 8; ++subbufs) {
      for (const uint32_t slots : {1U, 2U, 8U, 128U}) {
        for (uint64_t limit = 8 * kMi; limit < (uint64_t{1} << 40); limit *= 2) {
          const uint64_t budget = RingBudget(limit);
          const RingSize size = GrantRings({subbuf, subbufs}, budget, slots);
          EXPECT_LE(size.subbuf_shift, subbuf);
          EXPECT_LE(size.subbufs_shift, subbufs);
          EXPECT_GE(size.subbuf_shift, WEFT_RING_MIN_SUBBUF_SHIFT);
          EXPECT_GE(size.subbufs_shift, WEFT_RING_MIN_SUBBUFS_SHIFT);
          const uint64_t all = std::min(slots, 8U) + 1;
          EXPECT_LE(all << (size.subbuf_shift + size.subbufs_shift), PooledBytes(budget) / 2)
              << limit << " " << slots;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::agent
