// SPDX-License-Identifier: Apache-2.0
// The order in which a consumer, which the test plays, is told things.
#include "node-agent/agent/consumers/consumer_notifier.h"

#include <sys/wait.h>

#include "node-agent/agent/testing/parts_fixture.h"

namespace weft::agent {
namespace {

class ConsumerNotifierTest : public testing::PartsFixture {
 protected:
  ConsumerNotifierTest() { channel().phase = ChannelPhase::kOn; }

  // Adopts a ring set of a process that ends.
  void AdoptRingOfEndedProcess() {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) pause();
    }
    AdoptRing(child, kInstance);
    kill(child, SIGKILL);
    RunUntil([this] {
      bool any = false;
      parts_->processes.ForEachGone([&](const ProcessEntry&) { any = true; });
      return any;
    });
    waitpid(child, nullptr, 0);
  }
};

TEST_F(ConsumerNotifierTest, TellsAChannelThenItsRingsThenTheEndsOfTheirProcesses) {
  AdoptRingOfEndedProcess();
  Connect();
  const auto told = Told();
  ASSERT_EQ(Names(told), "Configure ChannelDefinition Ring ProcessGone ");
  EXPECT_EQ(std::get<ipc::ChannelDefinition>(told[1]).id, id());
  const auto& ring = std::get<ipc::Ring>(told[2]);
  EXPECT_EQ(ring.channel_id, id());
  EXPECT_EQ(ring.instance, kInstance);
  EXPECT_TRUE(ring.fd);
  EXPECT_EQ(std::get<ipc::ProcessGone>(told[3]).process, ring.process);
}

TEST_F(ConsumerNotifierTest, TheStateIsCompleteOnlyOnceAllRingsAreKnown) {
  AdoptRing();
  Connect();
  EXPECT_EQ(Names(Told()), "Configure ChannelDefinition Ring ");
  parts_->notifier.NoteRingsKnown();
  EXPECT_EQ(Names(Told()), "StateComplete ");
  Connect();
  EXPECT_EQ(Names(Told()), "Configure ChannelDefinition Ring StateComplete ")
      << "all is repeated on a new connection";
}

TEST_F(ConsumerNotifierTest, ASnapshotsRingsAreToldWhenItsChannelStops) {
  channel().snapshot = true;
  AdoptRing();
  Connect();
  parts_->notifier.TellRing(*parts_->processes.FindRing(id(), kInstance));
  EXPECT_EQ(Names(Told()), "Configure ChannelDefinition ");
  channel().phase = ChannelPhase::kStopping;
  parts_->notifier.TellStop(channel());
  EXPECT_EQ(Names(Told()), "Ring StopChannel ");
}

TEST_F(ConsumerNotifierTest, ARingSetThatIsDoneBeforeThereIsRoomIsNotTold) {
  Connect();
  (void)Told();
  AdoptRing();
  parts_->notifier.TellRing(*parts_->processes.FindRing(id(), kInstance));
  parts_->processes.Drop(id(), kInstance);
  const auto told = Told();
  ASSERT_EQ(Names(told), "ForgetRing ");
  EXPECT_EQ(std::get<ipc::ForgetRing>(told[0]).instance, kInstance);
}

TEST_F(ConsumerNotifierTest, ADrainedChannelIsNotTold) {
  channel().phase = ChannelPhase::kDrained;
  Connect();
  EXPECT_EQ(Names(Told()), "Configure ");
}

}  // namespace
}  // namespace weft::agent
