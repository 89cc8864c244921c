// SPDX-License-Identifier: Apache-2.0
// What the keeper that holds the lease learns of the others, which the test plays over real
// sockets.
#include "node-agent/keeper/heirs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "node-agent/keeper/limits.h"
#include "node-agent/keeper/testing.h"

namespace weft::keeper {
namespace {

class HeirsTest : public FolderTest {
 protected:
  HeirsTest() { EXPECT_TRUE(heirs_.Listen(folder_)); }

  ipc::Connection Connect() {
    auto connection = ipc::Connection::ConnectTo(folder_ + "/" + kHeirsSocket);
    EXPECT_TRUE(connection) << connection.error().message;
    return std::move(*connection);
  }
  // Another keeper connects, and says how it wants all.
  ipc::Connection Connect(bool now, uint32_t version = ipc::kProtocolVersion) {
    ipc::Connection connection = Connect();
    EXPECT_TRUE(connection.Send(ipc::TakeOver{.version = version, .now = now}));
    Settle();
    return connection;
  }
  // Runs the loop until all that was sent before has been handled.
  void Settle() {
    // Two rounds: one accepts connections, one reads from them.
    for (int round = 0; round < 2; ++round) {
      loop_.After(std::chrono::milliseconds(0), [this] { loop_.Stop(); });
      EXPECT_TRUE(loop_.Run());
    }
  }

  int asked_ = 0;
  std::vector<bool> ended_;
  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  Heirs heirs_{
      loop_,
      {.asked = [this] { ++asked_; }, .ended = [this](bool taken) { ended_.push_back(taken); }}};
};

TEST_F(HeirsTest, TheOneThatAsksForAllAtOnceIsChosen) {
  EXPECT_FALSE(heirs_.Choose()) << "there is none";
  const ipc::Connection waits = Connect(/*now=*/false);
  EXPECT_EQ(heirs_.chosen(), nullptr);
  const ipc::Connection asks = Connect(/*now=*/true);
  EXPECT_EQ(asked_, 1);
  ASSERT_NE(heirs_.chosen(), nullptr);
  EXPECT_TRUE(heirs_.understands());
}

TEST_F(HeirsTest, OneThatWaitsIsChosenWhenTheKeeperEnds) {
  EXPECT_FALSE(heirs_.Choose());
  ipc::Connection heir = Connect(/*now=*/false);
  EXPECT_TRUE(heirs_.Choose());
  EXPECT_EQ(asked_, 0);
  ASSERT_NE(heirs_.chosen(), nullptr);
  ASSERT_TRUE(heirs_.chosen()->Send(ipc::HandedOver{}));
  const auto told = heir.Wait(std::chrono::seconds(60));
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_TRUE(std::holds_alternative<ipc::HandedOver>(*told));
}

TEST_F(HeirsTest, OneAtATimeIsChosen) {
  ipc::Connection first = Connect(/*now=*/true);
  ipc::Connection* chosen = heirs_.chosen();
  const ipc::Connection second = Connect(/*now=*/true);
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(heirs_.Choose());
  EXPECT_EQ(heirs_.chosen(), chosen);
  first.Close();
  Settle();
  EXPECT_EQ(heirs_.chosen(), nullptr);
  EXPECT_EQ(ended_, std::vector<bool>{false});
  EXPECT_TRUE(heirs_.Choose()) << "the second is still there";
}

TEST_F(HeirsTest, TheLastOneThatCameIsChosen) {
  const ipc::Connection old = Connect(/*now=*/false);
  const ipc::Connection last = Connect(/*now=*/false, ipc::kProtocolVersion + 1);
  EXPECT_TRUE(heirs_.Choose());
  EXPECT_FALSE(heirs_.understands()) << "it has another version";
}

TEST_F(HeirsTest, OnlyTheChosenOneCanHaveTakenOver) {
  ipc::Connection other = Connect(/*now=*/false);
  ipc::Connection chosen = Connect(/*now=*/true);
  ASSERT_TRUE(other.Send(ipc::TakenOver{}));
  Settle();
  EXPECT_TRUE(ended_.empty());
  ASSERT_TRUE(chosen.Send(ipc::TakenOver{}));
  Settle();
  EXPECT_EQ(ended_, std::vector<bool>{true});
}

TEST_F(HeirsTest, AnHeirThatWasNotChosenEndsUnnoticed) {
  Connect(/*now=*/false).Close();
  Settle();
  EXPECT_TRUE(ended_.empty());
  EXPECT_FALSE(heirs_.Choose());
}

TEST_F(HeirsTest, AConnectionThatIsTakenIsTheCallers) {
  EXPECT_FALSE(heirs_.TakeChosen().valid());
  ipc::Connection heir = Connect(/*now=*/true);
  ipc::Connection taken = heirs_.TakeChosen();
  EXPECT_EQ(heirs_.chosen(), nullptr);
  ASSERT_TRUE(heir.Send(ipc::TakenOver{}));
  Settle();
  EXPECT_TRUE(ended_.empty());
  const auto message = taken.Wait(std::chrono::seconds(60));
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_TRUE(std::holds_alternative<ipc::TakenOver>(*message));
}

TEST_F(HeirsTest, TheKeeperThatHandedOverMayGetAllBack) {
  heirs_.Add(ipc::Connection());
  EXPECT_FALSE(heirs_.Choose()) << "there was none";
  auto pair = ipc::Connection::MakePair();
  ASSERT_TRUE(pair);
  heirs_.Add(ipc::Connection(std::move(pair->first)));
  EXPECT_TRUE(heirs_.Choose());
  EXPECT_TRUE(heirs_.understands());
}

TEST_F(HeirsTest, TooManyAreRefused) {
  std::vector<ipc::Connection> heirs;
  for (size_t i = 0; i < kMaxHeirs; ++i) heirs.push_back(Connect(/*now=*/false));
  ipc::Connection more = Connect();
  Settle();
  const auto refused = more.Wait(std::chrono::seconds(60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kClosed);
  heirs.pop_back();
  Settle();
  const ipc::Connection next = Connect(/*now=*/true);
  EXPECT_EQ(asked_, 1) << "there is room again";
}

}  // namespace
}  // namespace weft::keeper
