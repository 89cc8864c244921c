// SPDX-License-Identifier: Apache-2.0
#include "lib/api/event_counts.h"

#include <gtest/gtest.h>

namespace weft::api {
namespace {

const EventCounts kOne = {
    .recorded = 10,
    .delivered = 6,
    .discarded = 4,
    .overwritten = 1,
    .lost = 1,
    .missing = 5,
    .reasons = {{"ring", "full", 4}, {"ring", "overwritten", 1}, {"relay", "unreachable", 1}}};

TEST(EventCounts, AreAddedReasonByReason) {
  EventCounts sum = kOne;
  Add(sum, {.recorded = 1, .lost = 1, .missing = 1, .reasons = {{"node", "gone", 1}}});
  Add(sum, kOne);
  SortReasons(sum);
  EXPECT_EQ(sum, (EventCounts{.recorded = 21,
                              .delivered = 12,
                              .discarded = 8,
                              .overwritten = 2,
                              .lost = 3,
                              .missing = 11,
                              .reasons = {{"node", "gone", 1},
                                          {"relay", "unreachable", 2},
                                          {"ring", "full", 8},
                                          {"ring", "overwritten", 2}}}));
}

TEST(EventCounts, NeverFallBelowAFloor) {
  EventCounts same = kOne;
  RaiseTo(same, kOne);
  EXPECT_EQ(same, kOne);
  RaiseTo(same, {});
  EXPECT_EQ(same, kOne);
  EventCounts raised;
  RaiseTo(raised, kOne);
  EXPECT_EQ(raised, kOne);
  // Some were lost, others delivered, since.
  EventCounts other = {.recorded = 10, .delivered = 3, .lost = 7};
  RaiseTo(other, kOne);
  EXPECT_EQ(other.lost, 7);
  EXPECT_EQ(other.delivered, 6);
  EXPECT_EQ(other.missing, 11);
  EXPECT_EQ(other.recorded, 14) << "delivered, overwritten and lost ones were recorded";
}

TEST(EventCounts, EventsInFlightCanBeCountedAsLost) {
  EventCounts counts = kOne;
  EXPECT_EQ(InFlight(counts), 2);
  LoseInFlight(counts, "node", "gone");
  EXPECT_EQ(InFlight(counts), 0);
  EXPECT_EQ(counts.lost, 3);
  EXPECT_EQ(counts.missing, 7);
  EXPECT_EQ(counts.reasons.back(), (EventLoss{"node", "gone", 2}));
  const EventCounts before = counts;
  LoseInFlight(counts, "node", "gone");
  EXPECT_EQ(counts, before);
}

TEST(EventCounts, AreDescribedInOneLine) {
  EXPECT_EQ(Describe({}), "Recorded 0 events and delivered 0. Nothing was discarded or lost.");
  EXPECT_EQ(Describe(kOne),
            "Recorded 10 events and delivered 6. Discarded 4 (ring/full: 4). Lost 1 "
            "(relay/unreachable: 1). Newer events overwrote 1. 2 are not delivered yet.");
}

}  // namespace
}  // namespace weft::api
