// SPDX-License-Identifier: Apache-2.0
// The pool against a consumer that the test plays.
#include "node-agent/agent/consumers/consumer_pool.h"

#include <unistd.h>

#include <functional>

#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

using namespace std::chrono_literals;

class ConsumerPoolTest : public testing::AgentFixture {
 protected:
  ConsumerPoolTest() {
    loop_.AfterEachRound([this] { pool_.Pump(); });
  }

  void Connect() {
    auto pair = ipc::Connection::MakePair();
    ASSERT_TRUE(pair);
    consumer_ = ipc::Connection(std::move(pair->first));
    pool_.Connect({"shop", std::move(pair->second)});
  }
  // Runs the loop until `is_done`, which is looked at after each message and timer.
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(1ms, [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::vector<ipc::Message> heard_;
  std::vector<std::string> notes_;
  ConsumerPool pool_{
      loop_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
      [this](std::string text) { notes_.push_back(std::move(text)); },
      [this](ConsumerLink&, ipc::Message message) { heard_.push_back(std::move(message)); }};
  ipc::Connection consumer_;
};

TEST_F(ConsumerPoolTest, TheKeeperHasTheJournalBeforeItStartsAConsumer) {
  pool_.Start("shop");
  EXPECT_EQ(Last<ipc::Keep>().key, "journal/shop");
  EXPECT_EQ(Last<ipc::StartConsumer>().name, "shop");
  EXPECT_NE(pool_.Find("shop"), nullptr);
  pool_.Start("shop");
  EXPECT_EQ(Count<ipc::Keep>(), 1u) << "a journal is never replaced";
  pool_.Stop("shop");
  EXPECT_EQ(Last<ipc::StopConsumer>().name, "shop");
  EXPECT_EQ(Last<ipc::Drop>().key, "journal/shop");
  EXPECT_EQ(pool_.Find("shop"), nullptr);
}

TEST_F(ConsumerPoolTest, AKeptJournalStartsItsConsumerAgain) {
  pool_.Start("shop");
  ipc::Keep& keep = Last<ipc::Keep>();
  ipc::Kept kept{keep.key, keep.meta, std::move(keep.fd)};
  ConsumerPool next(
      loop_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
      [](const std::string&) {}, [](ConsumerLink&, const ipc::Message&) {});
  ASSERT_TRUE(next.TakeKept(kept));
  next.StartAll();
  EXPECT_EQ(Count<ipc::StartConsumer>(), 2u);
  EXPECT_NE(next.Find("shop"), nullptr);
  ipc::Kept other{"doorbell/pod", "", {}};
  EXPECT_FALSE(next.TakeKept(other));
}

TEST_F(ConsumerPoolTest, SendsNothingBeforeHello) {
  pool_.Start("shop");
  Connect();
  pool_.Tell("shop", [] { return ipc::StopChannel{1}; });
  ASSERT_TRUE(consumer_.Send(ipc::Hello{.pid = getpid()}));
  RunUntil([&] { return !heard_.empty(); });
  EXPECT_TRUE(std::holds_alternative<ipc::Hello>(heard_[0]));
  pool_.Tell("shop", [] { return ipc::StopChannel{2}; });
  pool_.Tell("bank", [] { return ipc::StopChannel{3}; });
  pool_.Pump();
  const auto message = consumer_.Wait(10s);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<ipc::StopChannel>(*message).channel_id, 2u);
  EXPECT_EQ(pool_.handled(), 1u);
}

TEST_F(ConsumerPoolTest, AConsumerOfAnotherVersionIsNotHeard) {
  pool_.Start("shop");
  Connect();
  ASSERT_TRUE(consumer_.Send(ipc::Hello{.version = ipc::kProtocolVersion + 1, .pid = getpid()}));
  RunUntil([&] { return !notes_.empty(); });
  EXPECT_TRUE(heard_.empty());
}

TEST_F(ConsumerPoolTest, TheEndOfAConsumerIsNotedOnce) {
  EXPECT_FALSE(pool_.NoteEnd({.name = "shop", .reason = "killed by signal 9"}));
  pool_.Start("shop");
  EXPECT_TRUE(pool_.NoteEnd({.name = "shop", .reason = "killed by signal 9", .given_up = true}));
  EXPECT_TRUE(pool_.Find("shop")->given_up);
  EXPECT_EQ(notes_.size(), 1u);
}

}  // namespace
}  // namespace weft::agent
