// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/session/pending_stops.h"

#include <gtest/gtest.h>

#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

using Channels = std::vector<uint64_t>;
constexpr int64_t kPatienceNs = std::chrono::nanoseconds(kSyncPatience).count();

TEST(PendingStops, AChannelWaitsForTheSyncAfterItsEnd) {
  PendingStops stops;
  stops.Add(1);
  EXPECT_TRUE(stops.Waits(1));
  EXPECT_EQ(stops.AskForSync(0), 1u);
  stops.Add(2);
  EXPECT_EQ(stops.AskForSync(0), 2u);
  EXPECT_EQ(stops.Answered(0), Channels{});
  EXPECT_EQ(stops.Answered(1), Channels{1});
  EXPECT_EQ(stops.Answered(2), (Channels{1, 2}));
  stops.Remove(1);
  EXPECT_FALSE(stops.Waits(1));
  EXPECT_EQ(stops.Answered(2), Channels{2});
}

TEST(PendingStops, AChannelThatEndsAgainWaitsForTheNewerSync) {
  PendingStops stops;
  stops.Add(1);
  EXPECT_EQ(stops.AskForSync(0), 1u);
  stops.Add(1);
  EXPECT_EQ(stops.AskForSync(0), 2u);
  EXPECT_EQ(stops.Answered(1), Channels{});
  EXPECT_EQ(stops.Answered(2), Channels{1});
}

TEST(PendingStops, ALateSyncNamesEachChannelOnce) {
  PendingStops stops;
  EXPECT_EQ(stops.TakeLate(2 * kPatienceNs), Channels{}) << "nothing waits";
  stops.Add(1);
  (void)stops.AskForSync(10);
  EXPECT_TRUE(stops.IsUntold(1));
  EXPECT_EQ(stops.TakeLate(10 + kPatienceNs - 1), Channels{});
  EXPECT_EQ(stops.TakeLate(10 + kPatienceNs), Channels{1});
  EXPECT_EQ(stops.TakeLate(10 + kPatienceNs), Channels{});
  EXPECT_TRUE(stops.Waits(1));
  EXPECT_FALSE(stops.IsUntold(1));
  stops.Remove(1);
  stops.Add(1);
  EXPECT_TRUE(stops.IsUntold(1)) << "a new end begins anew";
}

}  // namespace
}  // namespace weft::agent
