// SPDX-License-Identifier: Apache-2.0
// The program weft-consumer, talked to as keeper and agent do, in its sandbox.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "lib/ipc/connection.h"
#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/testing.h"

namespace weft::consumer {
namespace {

using ring::testing::MakeDescription;
using ring::testing::TestWriter;
using testing::Babeltrace;
using testing::Definition;
using testing::Folder;

constexpr std::chrono::milliseconds kPatience{60'000};

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() : journal(memfd_create("journal", MFD_CLOEXEC)), maker(folder.Open()) {}
  ~ServiceTest() override { End(); }

  void Start() {
    auto pair = ipc::Connection::MakePair();
    ASSERT_TRUE(pair);
    const int end = pair->second.get();
    pid = ::fork();
    if (pid == 0) {
      const std::string program = std::string(WEFT_BINARY_DIR) + "/bin/weft-consumer";
      // dup2 of a number to itself would leave close-on-exec set.
      const int moved = ::fcntl(end, F_DUPFD, 10);
      ::dup2(moved, ipc::kKeeperFd);
      ::close(moved);
      ::execl(program.c_str(), program.c_str(), nullptr);
      ::_exit(127);
    }
    keeper = ipc::Connection(std::move(pair->first));
  }

  // Connects a new agent, which says all it knows.
  void Connect(const std::vector<const TestWriter*>& rings) {
    auto pair = ipc::Connection::MakePair();
    ASSERT_TRUE(pair);
    ASSERT_TRUE(keeper.Send(ipc::Connect{"", std::move(pair->second)}));
    agent = ipc::Connection(std::move(pair->first));
    ipc::Configure configure;
    configure.journal = testing::Duplicate(journal);
    configure.clock = WEFT_CLOCK_TSC;
    ASSERT_TRUE(agent.Send(std::move(configure)));
    ASSERT_TRUE(agent.Send(Definition()));
    for (const TestWriter* writer : rings) {
      ipc::Ring ring;
      ring.channel_id = 1;
      ring.instance = 42;
      ring.process = 1;
      ring.fd = writer->Fd();
      ASSERT_TRUE(agent.Send(std::move(ring)));
    }
    ASSERT_TRUE(agent.Send(ipc::StateComplete{}));
  }

  // The next message of this kind; files are opened meanwhile.
  template <typename T>
  std::optional<T> Get() {
    for (;;) {
      auto message = agent.Wait(kPatience);
      if (!message) return std::nullopt;
      if (auto* request = std::get_if<ipc::FileRequest>(&*message)) {
        auto file = maker.OpenFile(request->name);
        if (!file) return std::nullopt;
        (void)agent.Send(ipc::FileAnswer{request->request, 0, std::move(*file)});
      } else if (auto* wanted = std::get_if<T>(&*message)) {
        return std::move(*wanted);
      } else if (auto* said = std::get_if<ipc::SlotWentRound>(&*message)) {
        went_round.push_back(*said);
      }
    }
  }

  int End() {
    if (pid <= 0) return 0;
    (void)keeper.Send(ipc::Exit{});
    int status = 0;
    ::waitpid(pid, &status, 0);
    pid = -1;
    return status;
  }

  void Kill() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }

  static void Write(TestWriter& writer, uint64_t count) {
    ring::MachineTicks ticks(WEFT_CLOCK_TSC);
    for (uint64_t i = 0; i < count; i++) {
      const std::vector<uint8_t> body(8, 1);
      ASSERT_TRUE(writer.Write(0, 0, static_cast<uint16_t>(i % 2), ticks.Ticks(), body));
    }
  }

  Folder folder;
  UniqueFd journal;
  store::DirectoryFileMaker maker;
  ipc::Connection keeper;
  ipc::Connection agent;
  std::vector<ipc::SlotWentRound> went_round;  // passed over by Get
  pid_t pid = -1;
};

TEST_F(ServiceTest, FromHelloToDrained) {
  TestWriter writer({.subbuf_shift = 14});
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  Start();
  Connect({&writer});
  ASSERT_TRUE(Get<ipc::Hello>());
  const auto ready = Get<ipc::ChannelReady>();
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->error, "");
  Write(writer, 100);
  ASSERT_TRUE(agent.Send(ipc::StopChannel{1}));
  const auto done = Get<ipc::RingDone>();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->instance, 42U);
  EXPECT_FALSE(done->corrupt);
  const auto drained = Get<ipc::Drained>();
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->counts.delivered, 100U);
  EXPECT_EQ(drained->counts.in_flight, 0U);
  EXPECT_EQ(End(), 0);
  EXPECT_EQ(Babeltrace(folder.path()).size(), 100U);
}

// Drained would be taken for the answer to the last stop, and what comes in between be lost.
TEST_F(ServiceTest, OnlyTheLastStopIsAnsweredWithDrained) {
  TestWriter writer({.subbuf_shift = 14});
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  Start();
  Connect({});
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  ASSERT_TRUE(agent.Send(ipc::StopChannel{.channel_id = 1, .more_follows = true}));
  ipc::ChannelDefinition second = Definition();  // by its answer the stop was understood
  second.id = 2;
  ASSERT_TRUE(agent.Send(std::move(second)));
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  Write(writer, 10);
  ASSERT_TRUE(
      agent.Send(ipc::Ring{.channel_id = 1, .instance = 42, .process = 1, .fd = writer.Fd()}));
  ASSERT_TRUE(agent.Send(ipc::StopChannel{.channel_id = 1}));
  const auto drained = Get<ipc::Drained>();
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->counts.delivered, 10U);
  EXPECT_EQ(End(), 0);
}

TEST_F(ServiceTest, AKilledConsumerAndAnotherAgentGoOn) {
  TestWriter writer({.subbuf_shift = 16});
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  for (int round = 0; round < 3; round++) {
    Start();
    Connect({&writer});
    ASSERT_TRUE(Get<ipc::ChannelReady>());
    Write(writer, 100);
    for (auto stats = Get<ipc::Stats>(); stats && stats->counts.delivered == 0;) {
      stats = Get<ipc::Stats>();
    }
    if (round == 1) Connect({&writer});  // the agent was killed
    Write(writer, 100);
    if (round < 2) Kill();
  }
  ASSERT_TRUE(agent.Send(ipc::StopChannel{1}));
  const auto drained = Get<ipc::Drained>();
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->counts.delivered, 600U);
  EXPECT_EQ(End(), 0);
  EXPECT_EQ(Babeltrace(folder.path()).size(), 600U);
}

// A consumer that begins without a journal counts from there on.
TEST_F(ServiceTest, ReportsItsLastCountsAtItsEnd) {
  TestWriter writer({.subbuf_shift = 16});
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  Start();
  Connect({&writer});
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  Write(writer, 100);
  auto stats = Get<ipc::Stats>();
  while (stats && stats->counts.delivered < 100) stats = Get<ipc::Stats>();
  ASSERT_TRUE(stats);
  // At its end the consumer may have delivered more than it last reported.
  const auto set = ring::RingSet::Open(writer.Fd());
  ASSERT_TRUE(set);
  Write(writer, 50);
  // All records, of 24 bytes each: a commit may have some of the last ones only.
  while (set->LoadTail(0) < WEFT_HEAD_INITIAL + 150 * 24) ::usleep(1000);
  EXPECT_EQ(End(), 0);
  while (auto more = Get<ipc::Stats>()) stats = std::move(more);
  EXPECT_EQ(stats->counts.delivered, Babeltrace(folder.path()).size());
  EXPECT_EQ(stats->counts.delivered, 150U);
}

TEST_F(ServiceTest, ReportsASlotThatWentRoundOnce) {
  TestWriter writer({.subbuf_shift = 12, .subbufs_shift = 1});
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  Start();
  Connect({&writer});
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  uint64_t written = 0;
  // Each event has 24 bytes, of a ring of 8 KiB.
  const auto write_and_wait = [&] {
    Write(writer, 100);
    written += 100;
    auto stats = Get<ipc::Stats>();
    while (stats && stats->counts.delivered < written) stats = Get<ipc::Stats>();
    ASSERT_TRUE(stats);
  };
  write_and_wait();
  write_and_wait();
  EXPECT_EQ(went_round.size(), 0U);
  for (int i = 0; i < 6; i++) write_and_wait();
  EXPECT_EQ(End(), 0);
  ASSERT_EQ(went_round.size(), 1U);
  EXPECT_EQ(went_round[0].channel_id, 1U);
  EXPECT_EQ(went_round[0].instance, 42U);
  EXPECT_EQ(went_round[0].slot, 0U);
}

TEST_F(ServiceTest, RequestsAFileAgainIfTheAgentDies) {
  TestWriter writer;
  writer.Describe(0, MakeDescription("p:e", {"number"}));
  Write(writer, 10);
  Start();
  Connect({&writer});
  for (int i = 0; i < 2; i++) {
    auto message = agent.Wait(kPatience);
    ASSERT_TRUE(message);
    if (std::holds_alternative<ipc::FileRequest>(*message)) break;
  }
  Connect({&writer});  // without an answer
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  ASSERT_TRUE(agent.Send(ipc::StopChannel{1}));
  const auto drained = Get<ipc::Drained>();
  ASSERT_TRUE(drained);
  EXPECT_EQ(drained->counts.delivered, 10U);
}

TEST_F(ServiceTest, RefusesAndReportsAForeignDescriptor) {
  Start();
  Connect({});
  ASSERT_TRUE(Get<ipc::ChannelReady>());
  ipc::Ring ring;
  ring.channel_id = 1;
  ring.instance = 7;
  ring.fd = UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(agent.Send(std::move(ring)));
  const auto done = Get<ipc::RingDone>();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->instance, 7U);
  EXPECT_TRUE(done->corrupt);
  EXPECT_NE(done->reason, "");
  EXPECT_EQ(End(), 0);
}

TEST_F(ServiceTest, HeartbeatsGoToTheKeeper) {
  Start();
  auto beat = keeper.Wait(kPatience);
  ASSERT_TRUE(beat);
  EXPECT_TRUE(std::holds_alternative<ipc::Heartbeat>(*beat));
  EXPECT_EQ(End(), 0);
}

}  // namespace
}  // namespace weft::consumer
