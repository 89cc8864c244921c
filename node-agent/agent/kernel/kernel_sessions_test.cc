// SPDX-License-Identifier: Apache-2.0
// What the agent does about kernel channels where weft.ko has no session of theirs; with weft.ko:
// kmod/tests and tests/local.
#include "node-agent/agent/kernel/kernel_sessions.h"

#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

using testing::MakeClusterSession;

class KernelSessionsTest : public testing::AgentFixture {
 protected:
  KernelSessionsTest() {
    Session session = MakeClusterSession();
    session.AddKernelChannel({}).phase = ChannelPhase::kOn;
    EXPECT_TRUE(store_.Add("one", std::move(session)));
  }
  [[nodiscard]] Session& session() { return *store_.Find("one"); }
  [[nodiscard]] SessionChannel& channel() { return session().channels.back(); }
  // Returns the channel as its file has it.
  [[nodiscard]] SessionChannel Saved() {
    SessionStore store(folder(), [](const std::string&) {});
    const Status loaded = store.Load("one");
    EXPECT_TRUE(loaded) << loaded.error().message;
    return store.Find("one")->channels.back();
  }

  testing::NotingListener listener_;
  SessionStore store_{folder(), [](const std::string&) {}};
  KernelSessions kernel_{store_, listener_,
                         [this](ipc::Message message) { ToKeeper(std::move(message)); },
                         [] { return uint32_t{WEFT_CLOCK_MONOTONIC}; }};
};

TEST_F(KernelSessionsTest, AChannelWhoseSessionWentWithTheKeeperIsDrained) {
  channel().reported.recorded = 5;
  channel().reported.in_flight = 5;
  kernel_.Restored();
  EXPECT_EQ(channel().phase, ChannelPhase::kDrained);
  EXPECT_EQ(channel().Counts().lost.at("keeper/gone"), 5u);
  EXPECT_EQ(channel().Counts().in_flight, 0u);
  EXPECT_EQ(channel().Counts().tail_unknown, 1u);
  EXPECT_EQ(Saved().phase, ChannelPhase::kDrained);
  EXPECT_EQ(session().channels.front().phase, ChannelPhase::kDefined) << "the user's is left alone";
}

TEST_F(KernelSessionsTest, AChannelThatIsStillDefinedIsMadeLater) {
  channel().phase = ChannelPhase::kDefined;
  kernel_.Restored();
  EXPECT_EQ(channel().phase, ChannelPhase::kDefined);
}

TEST_F(KernelSessionsTest, AKeptSessionOfNoChannelIsForgotten) {
  ipc::Kept kept{"kernel/session/77", "", {}};
  ASSERT_TRUE(kernel_.TakeKept(kept));
  kernel_.Restored();
  EXPECT_EQ(Count<ipc::Drop>(), 2u);
  ipc::Kept other{"doorbell/pod", "", {}};
  EXPECT_FALSE(kernel_.TakeKept(other));
}

TEST_F(KernelSessionsTest, ACgroupThatWeftKoRefusesIsNotInScope) {
  const Status changed = kernel_.SetScope(channel(), {7, 8});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(channel().scope.empty());
  EXPECT_EQ(Saved().scope, (std::set<uint64_t>{7, 8})) << "more than weft.ko has, never less";
}

TEST_F(KernelSessionsTest, ACgroupThatCannotLeaveStaysInTheFile) {
  channel().scope = {7};
  EXPECT_FALSE(kernel_.SetScope(channel(), {}));
  EXPECT_EQ(channel().scope, std::set<uint64_t>{7});
}

TEST_F(KernelSessionsTest, AChannelWithoutARingHasNoneForItsConsumer) {
  EXPECT_EQ(kernel_.FindRing(channel().definition.id).instance, 0u);
}

}  // namespace
}  // namespace weft::agent
