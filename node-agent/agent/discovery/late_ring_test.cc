// SPDX-License-Identifier: Apache-2.0
// Counting a ring set that has no reader while its process still writes.
#include "node-agent/agent/discovery/late_ring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "lib/ring/testing/test_writer.h"

namespace weft::agent {
namespace {

constexpr uint32_t kAtomicSlot = 2;

// acquire, release: the closing side's order is under test, so nothing here shall be weaker than it
uint32_t Closed(weft_slot* slot) { return __atomic_load_n(&slot->closed, __ATOMIC_ACQUIRE); }
void Store(uint64_t* word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

class LateRing : public testing::Test {
 protected:
  TokenBucket waits_{0, 1};
};

TEST_F(LateRing, CountsTheEventOfTheAtomicSlotsOwnerAtTheClose) {
  ring::testing::TestWriter writer;
  weft_slot* slot = writer.slot(kAtomicSlot);
  Store(&slot->lock, 7);
  std::thread owner([&] {
    while (Closed(slot) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Store(&slot->head, slot->head + 32 + (uint64_t{1} << 32));
    Store(&slot->lock, 0);
  });
  const auto totals = CloseAndCount(writer.Fd(), waits_);
  owner.join();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->recorded, 1U);
}

TEST_F(LateRing, GivesUpWaitingForADeadOwner) {
  ring::testing::TestWriter writer;
  Store(&writer.slot(kAtomicSlot)->lock, 7);
  const auto totals = CloseAndCount(writer.Fd(), waits_);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->recorded, 0U);
  EXPECT_TRUE(totals->is_final);
}

TEST_F(LateRing, WaitsNoMoreThanItMay) {
  ring::testing::TestWriter writer;
  EXPECT_TRUE(waits_.Take(TokenBucket::Clock::now()));
  Store(&writer.slot(kAtomicSlot)->lock, 7);
  const auto held = CloseAndCount(writer.Fd(), waits_);
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->is_final);
  Store(&writer.slot(kAtomicSlot)->lock, 0);
  const auto free = CloseAndCount(writer.Fd(), waits_);
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->is_final);
}

TEST_F(LateRing, DiscardsAreCountedByReason) {
  ring::testing::TestWriter writer;
  for (uint32_t i = 0; i < WEFT_DISCARD_MISSED; i++) writer.slot(1)->discarded[i] = i + 1;
  writer.slot(1)->missed = 6;
  const auto totals = CloseAndCount(writer.Fd(), waits_);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->discarded, (std::array<uint64_t, WEFT_DISCARD_REASONS>{1, 2, 3, 4, 5, 6}));
  EXPECT_STREQ(weft_discard_name(WEFT_DISCARD_MISSED), "missed");
}

TEST_F(LateRing, ChecksWhatTheHeaderClaims) {
  ring::testing::TestWriter writer({.channel_id = 5, .instance = 6});
  const UniqueFd fd = writer.Fd();
  const auto totals = IdentifyRing(fd);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->channel_id, 5U);
  EXPECT_EQ(totals->instance, 6U);
}

}  // namespace
}  // namespace weft::agent
