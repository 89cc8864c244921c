// SPDX-License-Identifier: Apache-2.0
// Which connection gives way when places or bytes run out.
#include "lib/http/connection_budget.h"

#include <gtest/gtest.h>

#include <deque>

namespace weft::http {
namespace {

struct Visitor : ConnectionBudget::Guest {
  std::function<void()> Evict() override {
    return [this] { evictions++; };
  }
  int evictions = 0;
};

TEST(ConnectionBudget, ClosesTheLongestWaitingOfTheAddressWithMostPlaces) {
  ConnectionBudget budget(4, 1000);
  Visitor kubelet;
  std::deque<Visitor> flood(6);
  ASSERT_TRUE(budget.Admit(kubelet, "node", 1));
  for (Visitor& one : flood) ASSERT_TRUE(budget.Admit(one, "pod", 1));
  EXPECT_EQ(kubelet.evictions, 0);
  for (int i = 0; i < 6; i++) EXPECT_EQ(flood[i].evictions, i < 3 ? 1 : 0) << i;
  EXPECT_EQ(budget.used_places(), 4U);
  EXPECT_EQ(budget.used_bytes(), 4U);
}

TEST(ConnectionBudget, RestCountsWaitingAnew) {
  ConnectionBudget budget(2, 1000);
  Visitor first;
  Visitor second;
  Visitor third;
  ASSERT_TRUE(budget.Admit(first, "a", 1));
  ASSERT_TRUE(budget.Admit(second, "a", 1));
  budget.Rest(first, 1);
  ASSERT_TRUE(budget.Admit(third, "a", 1));
  EXPECT_EQ(first.evictions, 0);
  EXPECT_EQ(second.evictions, 1);
}

TEST(ConnectionBudget, BytesAreTakenFromTheAddressThatHoldsMost) {
  ConnectionBudget budget(10, 100);
  Visitor server;
  Visitor small;
  Visitor large;
  ASSERT_TRUE(budget.Admit(server, "api", 10));
  ASSERT_TRUE(budget.Admit(small, "b", 10));
  ASSERT_TRUE(budget.Admit(large, "c", 10));
  ASSERT_TRUE(budget.Reserve(large, 60));
  ASSERT_TRUE(budget.Reserve(server, 40));
  EXPECT_EQ(large.evictions, 1);
  EXPECT_EQ(small.evictions, 0);
  EXPECT_EQ(budget.used_bytes(), 60U);
  EXPECT_FALSE(budget.Reserve(large, 1)) << "it has no place any more";
  EXPECT_FALSE(budget.Reserve(server, 51)) << "more than there is at all";
  EXPECT_EQ(small.evictions, 0) << "for nothing";
  budget.Rest(server, 10);
  EXPECT_EQ(budget.used_bytes(), 20U);
}

TEST(ConnectionBudget, AnAnswerIsNotInterrupted) {
  ConnectionBudget budget(1, 100);
  Visitor busy;
  Visitor other;
  ASSERT_TRUE(budget.Admit(busy, "a", 1));
  ASSERT_TRUE(budget.BeginAnswer(busy));
  EXPECT_FALSE(budget.Admit(other, "b", 1));
  budget.EndAnswer(busy);
  EXPECT_TRUE(budget.Admit(other, "b", 1));
  EXPECT_EQ(busy.evictions, 1);
  EXPECT_FALSE(budget.BeginAnswer(busy));
}

TEST(ConnectionBudget, LeaveGivesEverythingBack) {
  ConnectionBudget budget(2, 100);
  Visitor one;
  ASSERT_TRUE(budget.Admit(one, "a", 1));
  ASSERT_TRUE(budget.Reserve(one, 50));
  budget.Leave(one);
  budget.Leave(one);
  EXPECT_EQ(budget.used_places(), 0U);
  EXPECT_EQ(budget.used_bytes(), 0U);
}

}  // namespace
}  // namespace weft::http
