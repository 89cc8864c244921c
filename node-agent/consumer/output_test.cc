// SPDX-License-Identifier: Apache-2.0
// What an output says to its sink: of a disk that is as slow as a test wants.
#include "node-agent/consumer/output.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/testing.h"

namespace weft::consumer {
namespace {

using ring::testing::TestWriter;

struct Disk {
  bool slow = false;  // a commit does not end until Wait is called
  bool full = false;  // no commit ends
  int fell_behind = 0;
};

// A sink on a simulated disk.
class SinkOnDisk : public TraceSink, CommitSink {
 public:
  SinkOnDisk(std::unique_ptr<TraceSink> folder, Disk& disk)
      : folder_(std::move(folder)), disk_(&disk) {}

  MetadataSink& metadata() override { return folder_->metadata(); }
  PacketSink& packets() override { return folder_->packets(); }
  CommitSink& commits() override { return *this; }
  Result<bool> Ready() override { return folder_->Ready(); }
  Status Sync() override { return folder_->Sync(); }
  void Promise(uint64_t time_ns) override { folder_->Promise(time_ns); }
  void Report(const ipc::ChannelCounts& counts) override { folder_->Report(counts); }
  void Forget() override { folder_->Forget(); }

 private:
  void FallBehind() override {
    disk_->fell_behind++;
    folder_->commits().FallBehind();
  }
  void Start(std::function<void()> write) override {
    folder_->commits().Start(std::move(write));
    at_work_ = disk_->slow;
  }
  [[nodiscard]] bool Done() override {
    return !disk_->full && !at_work_ && folder_->commits().Wait();
  }
  bool Wait() override {
    at_work_ = false;
    return !disk_->full && folder_->commits().Wait();
  }
  [[nodiscard]] bool remote() const override { return false; }

  std::unique_ptr<TraceSink> folder_;
  Disk* disk_;
  bool at_work_ = false;
};

class SinksOnDisk : public SinkMaker {
 public:
  SinksOnDisk(SinkMaker& folders, Disk& disk) : folders_(&folders), disk_(&disk) {}
  Result<std::unique_ptr<TraceSink>> Open(const ipc::ChannelDefinition& definition,
                                          uint64_t metadata) override {
    WEFT_ASSIGN(auto folder, folders_->Open(definition, metadata));
    return std::make_unique<SinkOnDisk>(std::move(folder), *disk_);
  }

 private:
  SinkMaker* folders_;
  Disk* disk_;
};

class OutputTest : public ::testing::Test {
 protected:
  OutputTest() : maker(folder.Open()) {
    consumer = *Consumer::Make({}, UniqueFd(memfd_create("journal", MFD_CLOEXEC)), sinks,
                               [](const std::string&) {});
    EXPECT_TRUE(consumer->AddChannel(testing::Definition()));
  }
  // The first event makes a stream's file, and that waits for the disk.
  void Add(TestWriter& writer) {
    writer.Describe(0, ring::testing::MakeDescription("p:e", {"number", "ring"}));
    ASSERT_TRUE(consumer->AddRing(1, writer.Fd(), writer.header()->instance, 1));
    Write(writer, 1);
    while (consumer->Find(1)->Counts().delivered == 0) {
      consumer->Round();
      ASSERT_TRUE(consumer->FlushAll());
    }
  }
  // Writes events of 32 bytes that are old enough to be merged.
  void Write(TestWriter& writer, int events) {
    const std::vector<uint8_t> body(16);
    for (int i = 0; i < events; i++) {
      ASSERT_TRUE(writer.Write(0, 0, 0, ticks.Ticks(), body));
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kHorizonLag));
  }

  testing::Folder folder;
  store::DirectoryFileMaker maker;
  std::unique_ptr<BackgroundWriter> background =
      std::move(*BackgroundWriter::Make([] { return Status{}; }));
  FolderSinks folders{maker, *background};
  Disk disk;
  SinksOnDisk sinks{folders, disk};
  ring::MachineTicks ticks{WEFT_CLOCK_TSC};
  std::unique_ptr<Consumer> consumer;
};

// A commit is due whenever a quarter of the ring is in none: 128 events.
TEST_F(OutputTest, ADiskThatHoldsUpACommitWhileARingFillsIsBehind) {
  TestWriter writer;
  Add(writer);
  disk.slow = true;
  Write(writer, 150);
  consumer->Round();
  EXPECT_EQ(disk.fell_behind, 0);
  Write(writer, 150);
  consumer->Round();
  EXPECT_EQ(disk.fell_behind, 1);
}

// One that is due whenever a packet is full, 55,000 events, in a ring of 16 MiB.
TEST_F(OutputTest, WhileARingHasRoomADiskMayTakeItsTime) {
  TestWriter writer({.subbuf_shift = 22});
  Add(writer);
  disk.slow = true;
  Write(writer, 120'000);
  consumer->Round();
  EXPECT_EQ(disk.fell_behind, 0);
}

TEST_F(OutputTest, AQuickDiskDoesNotFallBehindWhileARingFills) {
  TestWriter writer({.subbuf_shift = 22});
  Add(writer);
  Write(writer, 300'000);
  consumer->Round();
  EXPECT_EQ(disk.fell_behind, 0);
}

TEST_F(OutputTest, DiscardedEventsAreCountedWhileNoCommitEnds) {
  TestWriter writer;
  Add(writer);
  disk.full = true;
  Write(writer, 150);
  consumer->Round();
  const std::vector<uint8_t> body(16);
  while (writer.discarded(0) < 1000) (void)writer.Write(0, 0, 0, ticks.Ticks(), body);
  consumer->Round();
  EXPECT_EQ(consumer->Find(1)->Counts().discarded["full"], writer.discarded(0));
  disk.full = false;
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kHorizonLag));
  while (consumer->Find(1)->Counts().in_flight > 0) {
    consumer->Round();
    ASSERT_TRUE(consumer->FlushAll());
  }
  EXPECT_EQ(consumer->Find(1)->Counts().discarded["full"], writer.discarded(0));
}

}  // namespace
}  // namespace weft::consumer
