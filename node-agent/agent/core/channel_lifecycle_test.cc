// SPDX-License-Identifier: Apache-2.0
// A channel from its start to its end, step by step, with the real parts. The test plays the keeper
// and the consumer.
#include "node-agent/agent/core/channel_lifecycle.h"

#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>

#include "lib/abi/control.h"
#include "lib/base/hexadecimal.h"
#include "node-agent/agent/testing/parts_fixture.h"

namespace weft::agent {
namespace {

class ChannelLifecycleTest : public testing::PartsFixture {
 protected:
  // Turns the channel on, and connects its consumer.
  void Begin() {
    parts_->rings.Begin();
    parts_->channels.Start(session());
    Connect();
    (void)Told();
  }
  void Stop() {
    parts_->channels.Stop([](const SessionChannel&) { return true; });
  }
  [[nodiscard]] uint64_t LastSync() { return Last<ipc::Sync>().number; }
  [[nodiscard]] ipc::Drained Drained() {
    return {.channel_id = id(), .counts = {.recorded = 7, .delivered = 7}};
  }
};

TEST_F(ChannelLifecycleTest, APhaseIsOnDiskBeforeItIsPublished) {
  const std::string control = folder() + "/control";
  ASSERT_TRUE(parts_->areas.Open("pod/main", control));
  parts_->channels.Start(session());
  EXPECT_EQ(Saved().phase, ChannelPhase::kOn);
  EXPECT_EQ(parts_->sessions.InForce("pod/main").size(), 1u);
  std::optional<ChannelPhase> at_sync;
  on_keeper_ = [&](const ipc::Message& message) {
    if (std::holds_alternative<ipc::Sync>(message)) at_sync = Saved().phase;
  };
  Stop();
  EXPECT_EQ(at_sync, ChannelPhase::kStopping);
  EXPECT_TRUE(parts_->sessions.InForce("pod/main").empty());
}

TEST_F(ChannelLifecycleTest, TheConsumerStopsWhenTheLastSyncIsAnswered) {
  Begin();
  Stop();
  const uint64_t first = LastSync();
  Stop();
  ASSERT_GT(LastSync(), first);
  parts_->channels.OnSynced(first);
  EXPECT_EQ(Names(Told()), "") << "a ring set may have been announced since";
  parts_->channels.OnSynced(LastSync());
  const auto told = Told();
  ASSERT_EQ(Names(told), "StopChannel ");
  EXPECT_FALSE(std::get<ipc::StopChannel>(told[0]).more_follows);
}

TEST_F(ChannelLifecycleTest, ASyncThatIsAnsweredBeforeRingSetsAreTakenCountsFromThen) {
  parts_->channels.Start(session());
  Stop();
  parts_->channels.OnSynced(LastSync());
  EXPECT_TRUE(parts_->pending_stops.Waits(id()));
  parts_->rings.Begin();
  parts_->channels.OnRingsBegun();
  EXPECT_FALSE(parts_->pending_stops.Waits(id()));
}

TEST_F(ChannelLifecycleTest, AChannelIsDrainedAfterItsStopOnly) {
  Begin();
  AdoptRing();
  Stop();
  Say(Drained());
  EXPECT_EQ(channel().phase, ChannelPhase::kStopping) << "ring sets may still come";
  parts_->channels.OnSynced(LastSync());
  std::optional<ChannelPhase> at_drop;
  on_keeper_ = [&](const ipc::Message& message) {
    const auto* drop = std::get_if<ipc::Drop>(&message);
    if (drop != nullptr && drop->key == "ring/42") at_drop = Saved().phase;
  };
  Say(Drained());
  EXPECT_EQ(channel().phase, ChannelPhase::kDrained);
  EXPECT_EQ(at_drop, ChannelPhase::kDrained) << "on disk before its descriptors are dropped";
  EXPECT_EQ(Saved().reported.delivered, 7u);
  EXPECT_EQ(parts_->processes.RingsOf(id()), 0u);
  EXPECT_EQ(Names(Told()), "StopChannel ForgetChannel ");
}

TEST_F(ChannelLifecycleTest, AConsumerDoesNotDrainAnothersChannel) {
  Begin();
  Stop();
  parts_->channels.OnSynced(LastSync());
  ConsumerLink other("bank", {});
  parts_->channels.OnDrained(other, Drained());
  EXPECT_EQ(channel().phase, ChannelPhase::kStopping);
}

TEST_F(ChannelLifecycleTest, TheNextAgentStopsAgainWhatWasStopping) {
  parts_->channels.Start(session());
  Stop();
  const size_t syncs = Count<ipc::Sync>();
  MakeParts();
  ASSERT_TRUE(parts_->sessions.Load("one"));
  parts_->channels.Resume();
  EXPECT_EQ(channel().phase, ChannelPhase::kStopping);
  EXPECT_TRUE(parts_->pending_stops.Waits(id()));
  EXPECT_EQ(Count<ipc::Sync>(), syncs + 1);
}

TEST_F(ChannelLifecycleTest, WhatIsGivenUpCountsAsLost) {
  const auto all = [](const SessionChannel&) { return true; };
  Begin();
  AdoptRing();
  channel().reported = {.recorded = 9, .delivered = 4, .in_flight = 5};
  parts_->channels.GiveUp(all, "relay", "unreachable");
  EXPECT_EQ(channel().phase, ChannelPhase::kOn) << "it still records";
  Stop();
  parts_->channels.GiveUp(all, "relay", "unreachable");
  EXPECT_EQ(channel().phase, ChannelPhase::kStopping) << "ring sets may still come";
  parts_->channels.OnSynced(LastSync());
  parts_->channels.GiveUp(all, "relay", "unreachable");
  EXPECT_EQ(channel().phase, ChannelPhase::kDrained);
  const ipc::ChannelCounts counts = Saved().Counts();
  EXPECT_EQ(counts.lost.at("relay/unreachable"), 5u);
  EXPECT_EQ(counts.in_flight, 0u);
  EXPECT_EQ(counts.tail_unknown, 1u);
  EXPECT_EQ(parts_->processes.RingsOf(id()), 0u);
  EXPECT_EQ(listener_.notes.size(), 1u);
}

TEST_F(ChannelLifecycleTest, AnOutputThatCannotBeMadeEndsWithItsChannel) {
  Begin();
  Say(ipc::ChannelReady{.channel_id = id(), .error = "the disk is full"});
  EXPECT_EQ(listener_.failures, std::vector<std::string>{"the disk is full"});
  EXPECT_EQ(channel().phase, ChannelPhase::kOn);
  Stop();
  parts_->channels.OnSynced(LastSync());
  EXPECT_EQ(channel().phase, ChannelPhase::kDrained);
}

// A loop in a pod, or one consumer, neither fills the log nor hides the lines about others.
TEST_F(ChannelLifecycleTest, TheLogHasFewLinesAboutOnePod) {
  Begin();
  const weft_doorbell bell{.magic = WEFT_DOORBELL_MAGIC, .kind = WEFT_DOORBELL_RING};
  const auto send = [&](const std::string& pod) {
    const std::string_view bytes(reinterpret_cast<const char*>(&bell), sizeof(bell));
    parts_->rings.TakeArrived({.doorbell = pod,
                               .message = ToHexadecimal(bytes),
                               .pid = getpid(),
                               .fd = UniqueFd(memfd_create("no ring set", MFD_CLOEXEC))});
  };
  for (int i = 0; i < 100; ++i) send("flooding");
  EXPECT_GE(listener_.notes.size(), 1U);
  EXPECT_LT(listener_.notes.size(), 100U);
  const size_t before = listener_.notes.size();
  send("quiet");
  ASSERT_EQ(listener_.notes.size(), before + 1);
  EXPECT_TRUE(listener_.notes.back().ends_with(" lines before this one left out)"));
  for (int i = 0; i < 100; ++i) Say(ipc::Notice{"weft-consumer", "no"});
  EXPECT_LT(listener_.notes.size(), before + 100);
}

}  // namespace
}  // namespace weft::agent
