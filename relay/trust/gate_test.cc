// SPDX-License-Identifier: Apache-2.0
#include "relay/trust/gate.h"

#include <gtest/gtest.h>

namespace weft::relay_trust {
namespace {

using Kind = Decision::Kind;
using State = SessionTable::State;

kube::Json Session(const std::string& node, const std::string& name_space, const std::string& trace,
                   const std::string& uid) {
  return {{"metadata", {{"namespace", name_space}}},
          {"spec", {{"nodeName", node}, {"traceName", trace}, {"traceUid", uid}}}};
}

stream::Hello HelloOf(const std::string& node = "n1", const std::string& name_space = "shop",
                      const std::string& trace = "t", const std::string& uid = "u") {
  return {.node = node,
          .kubernetes_namespace = name_space,
          .trace = trace,
          .trace_uid = uid,
          .ticket = ""};
}

class TableTest : public testing::Test {
 protected:
  SessionTable::Clock::time_point now_{std::chrono::hours(1)};
  SessionTable table_{[this] { return now_; }};
};

TEST_F(TableTest, FindsWhatTheApiServerListedOnly) {
  EXPECT_EQ(table_.Find(HelloOf()), State::kUnknown);
  table_.Replace({Session("n1", "shop", "t", "u")});
  EXPECT_EQ(table_.Find(HelloOf()), State::kPresent);
  EXPECT_EQ(table_.Find(HelloOf("n2")), State::kAbsent);
  EXPECT_EQ(table_.Find(HelloOf("n1", "bank")), State::kAbsent);
  EXPECT_EQ(table_.Find(HelloOf("n1", "shop", "other")), State::kAbsent);
  EXPECT_EQ(table_.Find(HelloOf("n1", "shop", "t", "later")), State::kAbsent);
}

TEST_F(TableTest, FollowsEvents) {
  table_.Replace({});
  EXPECT_EQ(table_.Find(HelloOf()), State::kAbsent);
  table_.See({kube::WatchType::kAdded, Session("n1", "shop", "t", "u")});
  EXPECT_EQ(table_.Find(HelloOf()), State::kPresent);
}

TEST_F(TableTest, KnowsWhatATraceLetsTheRelayKeep) {
  EXPECT_EQ(table_.StorageOf(HelloOf()), TraceStorage());
  kube::Json session = Session("n1", "shop", "t", "u");
  table_.Replace({session});
  EXPECT_EQ(table_.StorageOf(HelloOf()), TraceStorage());
  session["spec"]["record"] = {{"storage", {{"maxSize", "16Mi"}, {"maxAge", "90m"}}}};
  table_.See({kube::WatchType::kModified, session});
  EXPECT_EQ(table_.StorageOf(HelloOf()), (TraceStorage{16 << 20, std::chrono::minutes(90)}));
  table_.See({kube::WatchType::kDeleted, session});
  EXPECT_EQ(table_.StorageOf(HelloOf()).bytes, 16U << 20);
}

TEST_F(TableTest, LetsANodeDeliverTheRestAfterTheEnd) {
  for (const bool by_list : {false, true}) {
    table_.Replace({Session("n1", "shop", "t", "u")});
    if (by_list) {
      table_.Replace({});
    } else {
      table_.See({kube::WatchType::kDeleted, Session("n1", "shop", "t", "u")});
    }
    now_ += kLastDelivery - std::chrono::seconds(1);
    EXPECT_EQ(table_.Find(HelloOf()), State::kPresent);
    now_ += std::chrono::seconds(1);
    EXPECT_EQ(table_.Find(HelloOf()), State::kAbsent);
  }
}

TEST(Gate, AdmitsATicketOfItsOwnForATraceOfThatNode) {
  Gate gate(*TicketBook::Make());
  stream::Hello hello = HelloOf();
  EXPECT_EQ(std::string(gate.Decide(hello).reason), "no_ticket");
  hello.ticket = *gate.IssueTicket("n1", "shop");
  EXPECT_EQ(gate.Decide(hello).kind, Kind::kWait);
  gate.sessions().Replace({});
  EXPECT_EQ(gate.Decide(hello).kind, Kind::kWait);
  EXPECT_EQ(std::string(gate.Decide(hello).reason), "no_session");
  EXPECT_TRUE(gate.IsOver(hello));
  gate.sessions().Replace({Session("n1", "shop", "t", "u"), Session("n1", "bank", "t", "u"),
                           Session("n2", "shop", "t", "u")});
  EXPECT_EQ(gate.Decide(hello).kind, Kind::kAdmit);
  EXPECT_FALSE(gate.IsOver(hello));
}

TEST(Gate, RefusesATicketOfAnotherNodeOrNamespace) {
  Gate gate(*TicketBook::Make());
  gate.sessions().Replace({Session("n1", "shop", "t", "u")});
  for (const auto& [node, name_space] : {std::pair{"n2", "shop"}, std::pair{"n1", "bank"}}) {
    stream::Hello hello = HelloOf();
    hello.ticket = *gate.IssueTicket(node, name_space);
    const Decision decision = gate.Decide(hello);
    EXPECT_EQ(decision.kind, Kind::kRefuse);
    EXPECT_EQ(std::string(decision.reason), "wrong_ticket");
  }
}

}  // namespace
}  // namespace weft::relay_trust
