// SPDX-License-Identifier: Apache-2.0
// A consumer whose journal cannot be written for a while, as if its file system were full: events
// wait in their rings, nothing is lost or read twice, and a channel can be drained. A limit on the
// size of files stands for the full disk: it concerns the journal only, which is sparse.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>

#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/testing.h"

namespace weft::consumer {
namespace {

using ring::testing::MakeDescription;
using ring::testing::TestWriter;
using testing::Babeltrace;
using testing::Definition;
using testing::Folder;
using testing::Running;
using testing::Value;

class FullJournalTest : public ::testing::Test {
 protected:
  FullJournalTest() : journal(memfd_create("journal", MFD_CLOEXEC)) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &usual);
  }
  ~FullJournalTest() override {
    SetFull(false);
    std::signal(SIGXFSZ, SIG_DFL);
  }

  void SetFull(bool full) const {
    rlimit limit = usual;
    if (full) limit.rlim_cur = rlim_t{64} << 20;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  bool Write(TestWriter& writer) {
    std::vector<uint8_t> body(16);
    std::memcpy(body.data(), &number, sizeof(number));
    const bool has_room = writer.Write(0, 0, 0, ticks.Ticks(), body);
    number += has_room ? 1 : 0;
    return has_room;
  }
  // Writes until there is no room, also after the consumer has had time to make some.
  void FillRing(Running& running, TestWriter& writer) {
    for (int refused = 0; refused < 100;) {
      refused = Write(writer) ? 0 : refused + 1;
      if (refused > 0 || number % 50 == 0) {
        running.consumer->Round();
        ::usleep(1000);
      }
    }
  }
  void Begin(Running& running, TestWriter& writer) const {
    ASSERT_TRUE(running.consumer->AddChannel(Definition()));
    ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), writer.header()->instance, 1));
  }
  // Writes an event of the class that the journal needs: an event of a class that the full journal
  // does not have would be lost.
  void BeginWithOneEvent(Running& running, TestWriter& writer) {
    writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
    Begin(running, writer);
    ASSERT_TRUE(Write(writer));
    ASSERT_TRUE(
        running.RunUntil([&] { return running.consumer->Find(1)->Counts().delivered == 1; }));
  }
  void ExpectAll(const ipc::ChannelCounts& counts) const {
    std::set<uint64_t> numbers;
    for (const std::string& line : Babeltrace(folder.path()))
      EXPECT_TRUE(numbers.insert(Value(line, "number")).second) << "twice: " << line;
    EXPECT_EQ(numbers.size(), number);
    EXPECT_EQ(counts.recorded, number);
    EXPECT_EQ(counts.delivered, number);
    EXPECT_EQ(counts.in_flight, 0U);
  }

  Folder folder;
  UniqueFd journal;
  rlimit usual{};
  ring::MachineTicks ticks{WEFT_CLOCK_TSC};
  uint64_t number = 0;
};

TEST_F(FullJournalTest, EventsWaitInTheirRings) {
  TestWriter writer({.subbuf_shift = 14});
  {
    Running running(folder, journal);
    BeginWithOneEvent(running, writer);
    SetFull(true);
    FillRing(running, writer);
    EXPECT_TRUE(running.RunUntil([&] { return !running.notices.empty(); }));
    EXPECT_EQ(running.notices.size(), 1U) << "told once";
    // It is killed here, and the next one finds the disk full, too.
  }
  {
    Running running(folder, journal);
    // A folder's channel needs a commit at its beginning; a relay's waits for it.
    EXPECT_FALSE(running.consumer->AddChannel(Definition()));
  }
  SetFull(false);
  Running running(folder, journal);
  Begin(running, writer);
  ASSERT_TRUE(running.RunUntil([&] { return Write(writer); })) << "the ring has room again";
  SetFull(true);
  FillRing(running, writer);
  SetFull(false);
  ASSERT_TRUE(running.RunUntil([&] { return Write(writer); })) << "without another consumer";
  ASSERT_TRUE(running.Drain());
  ExpectAll(running.consumer->Find(1)->Counts());
}

TEST_F(FullJournalTest, AChannelCanBeDrained) {
  TestWriter writer({.subbuf_shift = 14});
  Running running(folder, journal);
  BeginWithOneEvent(running, writer);
  SetFull(true);
  FillRing(running, writer);
  running.consumer->StopChannels({1});
  EXPECT_TRUE(running.RunUntil([&] { return running.consumer->Find(1)->drained(); }));
  EXPECT_TRUE(running.consumer->Find(1)->TakeEnded().empty()) << "the agent keeps the ring set";
  SetFull(false);  // for what reads the trace
  ExpectAll(running.consumer->Find(1)->Counts());
}

}  // namespace
}  // namespace weft::consumer
