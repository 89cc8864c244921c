// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/session/session_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;
using testing::AgentFixture;
using testing::MakeClusterSession;

class SessionStoreTest : public AgentFixture {
 protected:
  SessionStore store_{folder(), [this](std::string text) { notes_.push_back(std::move(text)); }};
  std::vector<std::string> notes_;
};

TEST_F(SessionStoreTest, ASessionComesBackFromItsFile) {
  ASSERT_TRUE(store_.Add("one", MakeClusterSession()));
  const uint64_t id = store_.Find("one")->channels[0].definition.id;
  SessionStore next(folder(), [](const std::string&) {});
  EXPECT_EQ(next.Find("one"), nullptr);
  ASSERT_TRUE(next.Load("one"));
  EXPECT_EQ(next.FindChannel(id).session, next.Find("one"));
  EXPECT_EQ(next.Load("two").error().code, ErrorCode::kNotFound);
  next.Remove("one");
  EXPECT_EQ(next.FindChannel(id).channel, nullptr);
  EXPECT_TRUE(fs::is_empty(folder()));
}

TEST_F(SessionStoreTest, AConsumerFindsItsOwnChannelsOnly) {
  ASSERT_TRUE(store_.Add("one", MakeClusterSession("shop")));
  const uint64_t id = store_.Find("one")->channels[0].definition.id;
  EXPECT_NE(store_.FindChannelOf("shop", id).channel, nullptr);
  EXPECT_EQ(store_.FindChannelOf("bank", id).channel, nullptr);
  ASSERT_NE(store_.SessionOf("shop", id), nullptr);
  EXPECT_EQ(store_.SessionOf("shop", id)->relay.host, "relay.svc");
  EXPECT_EQ(store_.SessionOf("bank", id), nullptr);
  store_.Find("one")->channels[0].phase = ChannelPhase::kDrained;
  store_.Find("one")->RetireDrained();
  EXPECT_EQ(store_.FindChannel(id).channel, nullptr);
  EXPECT_NE(store_.SessionOf("shop", id), nullptr) << "its last packets are still on their way";
  EXPECT_EQ(store_.SessionOf("bank", id), nullptr);
}

TEST_F(SessionStoreTest, ChannelsOfAllSessionsAreInForceInAContainer) {
  ASSERT_TRUE(store_.Add("one", MakeClusterSession()));
  ASSERT_TRUE(store_.Add("two", MakeClusterSession()));
  const std::string key = store_.Find("one")->channels[0].container;
  EXPECT_TRUE(store_.InForce(key).empty());
  store_.ForEachChannel([](Session&, SessionChannel& c) { c.phase = ChannelPhase::kOn; });
  const auto specs = store_.InForce(key);
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].flags & WEFT_CHANNEL_LARGE_RECORDS, uint32_t{WEFT_CHANNEL_LARGE_RECORDS});
  EXPECT_TRUE(store_.InForce("other").empty());
}

TEST_F(SessionStoreTest, ChannelsWithoutAJournalGoOnInTracesOfTheirOwn) {
  ASSERT_TRUE(store_.Add("one", MakeClusterSession("shop")));
  SessionChannel& channel = store_.Find("one")->channels[0];
  channel.reported.recorded = 10;
  channel.reported.delivered = 7;
  channel.reported.in_flight = 3;
  const Uuid uuid = channel.definition.trace_uuid;
  store_.RenewWithoutJournal([](const std::string& consumer) { return consumer == "shop"; });
  EXPECT_EQ(channel.definition.trace_uuid, uuid);
  store_.RenewWithoutJournal([](const std::string&) { return false; });
  EXPECT_NE(channel.definition.trace_uuid, uuid);
  EXPECT_EQ(channel.own.recorded, 7u) << "what was in flight is read again";
  EXPECT_EQ(channel.Counts().recorded, 7u);
  EXPECT_EQ(channel.Counts().in_flight, 0u);
}

TEST_F(SessionStoreTest, AFileThatCannotBeWrittenIsNoted) {
  ASSERT_TRUE(store_.Add("one", MakeClusterSession()));
  fs::remove_all(folder());
  store_.SaveOrNote(*store_.Find("one"));
  EXPECT_EQ(notes_.size(), 1u);
}

}  // namespace
}  // namespace weft::agent
