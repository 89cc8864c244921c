// SPDX-License-Identifier: Apache-2.0
// What becomes of a ring set that arrives, by the phase of its channel.
#include "node-agent/agent/discovery/ring_registry.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/abi/control.h"
#include "lib/base/pidfd.h"
#include "lib/ring/testing/test_writer.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

using testing::MakeClusterSession;

constexpr uint64_t kInstance = 42;

class TestLookup final : public ContainerLookup {
 public:
  bool Belongs(const std::string&, const CallerId&) override { return belongs; }
  std::optional<std::string> ContainerOf(int32_t) override { return std::nullopt; }

  bool belongs = true;
};

std::string DoorbellMessage(weft_doorbell bell = {.kind = WEFT_DOORBELL_RING}) {
  bell.magic = WEFT_DOORBELL_MAGIC;
  std::string text;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&bell);
  for (size_t i = 0; i < sizeof(bell); ++i) {
    text.push_back("0123456789abcdef"[bytes[i] >> 4]);
    text.push_back("0123456789abcdef"[bytes[i] & 15]);
  }
  return text;
}

class RingRegistryTest : public testing::AgentFixture {
 protected:
  RingRegistryTest() {
    EXPECT_TRUE(store_.Add("one", MakeClusterSession()));
    channel().phase = ChannelPhase::kOn;
    EXPECT_TRUE(doorbells_.Open("pod", folder()));
    registry_.Begin();
  }

  [[nodiscard]] SessionChannel& channel() { return store_.Find("one")->channels[0]; }
  RingRegistry::Needs Needs() {
    return {.sessions = store_,
            .pending_stops = stops_,
            .processes = processes_,
            .finder = finder_,
            .doorbells = doorbells_,
            .lookup = lookup_,
            .keeper = [this](ipc::Message message) { ToKeeper(std::move(message)); },
            .note = [this](std::string text) { notes_.push_back(std::move(text)); },
            .note_of = [this](const std::string& of,
                              std::string text) { notes_.push_back(of + ": " + std::move(text)); },
            .adopted = [this](const RingEntry& ring) { adopted_.push_back(ring.instance); }};
  }
  // Returns a ring set of the channel with one event in it.
  ipc::Arrived Arrival(const std::string& key = "ring/1") {
    writer_ = std::make_unique<ring::testing::TestWriter>(
        ring::testing::WriterOptions{.channel_id = channel().definition.id, .instance = kInstance});
    const uint8_t body[8] = {};
    EXPECT_TRUE(writer_->Write(0, 1, 0, 1, body));
    return {.key = key,
            .doorbell = "pod",
            .message = DoorbellMessage(),
            .pid = getpid(),
            .uid = 0,
            .gid = 0,
            .fd = writer_->Fd(),
            .pidfd = OpenPidfd(getpid())};
  }

  // Writes its name, as a process that could not send the ring set does.
  void WriteName() {
    const weft_doorbell name{.magic = WEFT_DOORBELL_MAGIC,
                             .kind = WEFT_DOORBELL_MISSING,
                             .instance = kInstance,
                             .channel_id = channel().definition.id,
                             .reserved = 0};
    const UniqueFd names(open((folder() + "/" WEFT_NAMES_NAME).c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_EQ(write(names.get(), &name, sizeof(name)), ssize_t{sizeof(name)});
  }
  void TakeName() {
    WriteName();
    EXPECT_TRUE(registry_.TakeNames());
  }
  FoundMemory Found() {
    return {.pid = getpid(), .fd = Arrival().fd, .pidfd = OpenPidfd(getpid())};
  }
  [[nodiscard]] ipc::RingDone Done() {
    return {.channel_id = channel().definition.id, .instance = kInstance};
  }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::unique_ptr<ring::testing::TestWriter> writer_;
  std::vector<std::string> notes_;
  std::vector<uint64_t> adopted_;
  SessionStore store_{folder(), [](const std::string&) {}};
  PendingStops stops_;
  Processes processes_{loop_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
                       [](const ProcessEntry&) {}};
  Finder finder_{[](const FoundMemory&) { return Finder::Verdict::kKnown; }};
  Doorbells doorbells_{[this](ipc::Message message) { ToKeeper(std::move(message)); }};
  TestLookup lookup_;
  RingRegistry registry_{Needs()};
};

// docs/formats/control.md.
TEST(Doorbell, HasItsBytes) {
  EXPECT_EQ(DoorbellMessage(
                {.kind = WEFT_DOORBELL_MISSING, .instance = 0x0102030405060708, .channel_id = 9}),
            "57424c4c02000000"
            "0807060504030201"
            "0900000000000000"
            "0000000000000000");
}

TEST_F(RingRegistryTest, ARingSetOfAChannelThatIsOnIsAdoptedOnce) {
  registry_.TakeArrived(Arrival());
  EXPECT_EQ(adopted_, std::vector<uint64_t>{kInstance});
  registry_.TakeArrived(Arrival("ring/2"));
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/2");
  EXPECT_EQ(channel().Counts().rings, 0u) << "its consumer counts it";
}

TEST_F(RingRegistryTest, ARingSetOfAChannelThatHasEndedIsCountedOnceAsLate) {
  channel().phase = ChannelPhase::kDrained;
  registry_.TakeArrived(Arrival());
  EXPECT_TRUE(adopted_.empty());
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/1");
  EXPECT_EQ(channel().Counts().recorded, 1u);
  EXPECT_EQ(channel().Counts().lost.at("agent/late_ring"), 1u);
  registry_.TakeArrived(Arrival());
  EXPECT_EQ(channel().Counts().recorded, 1u);
  SessionStore next(folder(), [](const std::string&) {});
  ASSERT_TRUE(next.Load("one"));
  EXPECT_TRUE(next.Find("one")->channels[0].accounted.contains(kInstance)) << "it is on disk";
}

TEST_F(RingRegistryTest, AStoppingChannelTakesRingSetsUntilItsSyncIsAnswered) {
  channel().phase = ChannelPhase::kStopping;
  stops_.Add(channel().definition.id);
  registry_.TakeArrived(Arrival());
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(RingRegistryTest, ARingSetThatTheKeeperCouldNotHoldIsCounted) {
  registry_.TakeArrived(Arrival(""));
  EXPECT_TRUE(adopted_.empty());
  EXPECT_EQ(channel().Counts().lost.at("keeper/too_many_rings"), 1u);
}

TEST_F(RingRegistryTest, ARingSetOfAnotherContainersProcessIsRefused) {
  lookup_.belongs = false;
  registry_.TakeArrived(Arrival());
  EXPECT_TRUE(adopted_.empty());
  EXPECT_EQ(notes_.size(), 1u);
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/1");
  EXPECT_EQ(channel().Counts().recorded, 0u);
}

TEST_F(RingRegistryTest, DropsCallersWithAnotherMessageSilently) {
  ipc::Arrived arrived = Arrival();
  arrived.message = "00";
  registry_.TakeArrived(std::move(arrived));
  EXPECT_TRUE(adopted_.empty());
  EXPECT_TRUE(notes_.empty());
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/1");
}

TEST_F(RingRegistryTest, TakesNoNameOfAnotherContainersRingSet) {
  lookup_.belongs = false;
  TakeName();
  registry_.CountMissing(channel(), true);
  EXPECT_EQ(channel().Counts().tail_unknown, 0u);
}

TEST_F(RingRegistryTest, AnAnnouncementWithoutItsDescriptorCountsAsAName) {
  ipc::Arrived arrived = Arrival();
  arrived.message = DoorbellMessage(
      {.kind = WEFT_DOORBELL_RING, .instance = kInstance, .channel_id = channel().definition.id});
  arrived.fd.reset();
  registry_.TakeArrived(std::move(arrived));
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/1");
  registry_.CountMissing(channel(), true);
  EXPECT_EQ(channel().Counts().tail_unknown, 1u);
}

TEST_F(RingRegistryTest, CountsAMissingRingSetOnceAndNeverTakesItIn) {
  TakeName();
  TakeName();
  for (uint32_t i = 0; i < kLooksForMissing; ++i) registry_.CountMissing(channel(), false);
  EXPECT_EQ(channel().Counts().tail_unknown, 1u);
  EXPECT_EQ(notes_.size(), 1u);
  TakeName();
  registry_.CountMissing(channel(), true);
  EXPECT_EQ(channel().Counts().tail_unknown, 1u);
  registry_.TakeArrived(Arrival());
  EXPECT_EQ(registry_.TakeFound(Found()), Finder::Verdict::kKnown);
  EXPECT_TRUE(adopted_.empty());
}

TEST_F(RingRegistryTest, DoesNotCountAMissingRingSetThatIsFound) {
  if (!finder_.refusal().empty()) GTEST_SKIP() << finder_.refusal();
  TakeName();
  EXPECT_EQ(registry_.TakeFound(Found()), Finder::Verdict::kKnown);
  registry_.CountMissing(channel(), true);
  EXPECT_EQ(channel().Counts().tail_unknown, 0u);
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(RingRegistryTest, DoesNotCountTheNameOfARingSetThatIsKnown) {
  registry_.TakeArrived(Arrival());
  TakeName();
  registry_.CountMissing(channel(), true);
  EXPECT_EQ(channel().Counts().tail_unknown, 0u);
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(RingRegistryTest, TakesNamesOnceContainersAreKnown) {
  RingRegistry waiting(Needs());
  WriteName();
  EXPECT_FALSE(waiting.TakeNames());
  waiting.Begin();
  EXPECT_TRUE(waiting.TakeNames());
}

TEST_F(RingRegistryTest, SavesANameThatWasRead) {
  if (!finder_.refusal().empty()) GTEST_SKIP() << finder_.refusal();
  TakeName();
  EXPECT_FALSE(registry_.TakeNames());
  SessionStore next(folder(), [](const std::string&) {});
  ASSERT_TRUE(next.Load("one"));
  EXPECT_TRUE(next.Find("one")->channels[0].missing.contains(kInstance));
}

// Its announcement waited in the backlog while the finder found it, and it was read to its end.
TEST_F(RingRegistryTest, DropsAnAnnouncementAfterTheEndOfARingSetThatWasFound) {
  EXPECT_EQ(registry_.TakeFound(Found()), Finder::Verdict::kKnown);
  EXPECT_TRUE(registry_.Finish(&channel(), Done()));
  registry_.TakeArrived(Arrival("ring/2"));
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_EQ(Last<ipc::Drop>().key, "ring/2");
}

TEST_F(RingRegistryTest, CountsNoLossForARefusedAnnouncementOfARingSetThatWasFound) {
  EXPECT_EQ(registry_.TakeFound(Found()), Finder::Verdict::kKnown);
  registry_.TakeArrived(Arrival(""));
  EXPECT_EQ(adopted_.size(), 1u);
  EXPECT_EQ(channel().Counts().recorded, 0u);
}

TEST_F(RingRegistryTest, AdoptsNothingBeforeContainersAreKnown) {
  RingRegistry waiting(Needs());
  waiting.TakeArrived(Arrival());
  EXPECT_TRUE(adopted_.empty());
  waiting.Begin();
  EXPECT_EQ(adopted_.size(), 1u);
}

TEST_F(RingRegistryTest, AConsumerFinishesItsOwnRingSetsOnly) {
  registry_.TakeArrived(Arrival());
  const ipc::RingDone done{.channel_id = channel().definition.id, .instance = kInstance};
  EXPECT_FALSE(registry_.Finish(nullptr, done));
  EXPECT_NE(processes_.FindRing(done.channel_id, kInstance), nullptr);
  EXPECT_TRUE(registry_.Finish(&channel(), done));
  EXPECT_EQ(processes_.FindRing(done.channel_id, kInstance), nullptr);
}

TEST_F(RingRegistryTest, ReportsACorruptRingSetWithItsProcesssNameEscaped) {
  char name[16] = {};
  ASSERT_EQ(prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(prctl(PR_SET_NAME, "a\x1b[2J\rb"), 0);
  registry_.TakeArrived(Arrival());
  ASSERT_EQ(prctl(PR_SET_NAME, name), 0);
  ipc::RingDone done = Done();
  done.corrupt = true;
  EXPECT_TRUE(registry_.Finish(&channel(), done));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("(a\\x1b[2J\\x0db)"), std::string::npos) << notes_[0];
}

TEST_F(RingRegistryTest, ReportsACorruptRingSetOfTheKernel) {
  channel().definition.domain = ipc::kKernelDomain;
  EXPECT_TRUE(registry_.Finish(&channel(), {.channel_id = channel().definition.id,
                                            .instance = kInstance,
                                            .corrupt = true,
                                            .reason = "wrong magic number"}));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("wrong magic number"), std::string::npos) << notes_[0];
}

TEST_F(RingRegistryTest, ARingSetThatItsConsumerRefusesIsCounted) {
  registry_.TakeArrived(Arrival());
  EXPECT_TRUE(registry_.Finish(
      &channel(), {.channel_id = channel().definition.id, .instance = kInstance, .refused = true}));
  EXPECT_EQ(channel().Counts().lost.at("consumer/too_many_rings"), 1u);
}

}  // namespace
}  // namespace weft::agent
