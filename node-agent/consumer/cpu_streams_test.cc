// SPDX-License-Identifier: Apache-2.0
// A packet that cannot be written: its events are lost, counted exactly, and leave no gap.
#include "node-agent/consumer/cpu_streams.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "lib/event/description.h"
#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/limits.h"
#include "node-agent/consumer/testing.h"

namespace weft::consumer {
namespace {

// While it lives no file of this process grows beyond `bytes`.
class FilesEndAt {
 public:
  explicit FilesEndAt(uint64_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit less{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &less);
  }
  ~FilesEndAt() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FilesEndAt(const FilesEndAt&) = delete;
  FilesEndAt& operator=(const FilesEndAt&) = delete;

 private:
  rlimit before_{};
};

std::vector<ctf::PacketInfo> Packets(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
  std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  std::vector<ctf::PacketInfo> packets;
  while (!bytes.empty()) {
    auto info = ctf::ReadPacketInfo(bytes);
    if (!info || info->packet_bytes > bytes.size()) {
      ADD_FAILURE() << "no packet at the end of " << file;
      break;
    }
    packets.push_back(*info);
    bytes = bytes.subspan(info->packet_bytes);
  }
  return packets;
}

class CpuStreamsTest : public ::testing::Test {
 protected:
  CpuStreamsTest() : maker(folder.Open()) {
    channel = *ctf::MakeChannel({.id = 0, .name = "user"});
    const auto description = ring::testing::MakeDescription("p:e", {"number"});
    event = *ctf::MakeEventClass(0, channel, *EventDescription::Parse(description));
    sink = std::make_unique<FolderSink>(*store::TraceStore::Open(maker, "t"), *writer);
    streams.emplace(sink->packets(), Uuid{}, channel, 4, [] { return Status{}; });
  }
  void Append(int events) {
    const std::vector<uint8_t> body(8, 1);
    for (int i = 0; i < events; i++) {
      ASSERT_EQ(streams->Append(2, time, time, event, body), ctf::Appended::kOk);
      time++;
    }
  }

  bool Flush() {
    Seal();
    streams->Write();
    return Settle();
  }
  void Seal() { streams->Seal(time); }
  bool Settle() {
    const CpuStreams::Settled settled = streams->Settle();
    delivered += settled.delivered;
    lost += settled.lost;
    return settled.status.has_value();
  }

  testing::Folder folder;
  store::DirectoryFileMaker maker;
  ctf::Channel channel;
  ctf::EventClass event;
  std::unique_ptr<BackgroundWriter> writer =
      std::move(*BackgroundWriter::Make([] { return Status{}; }));
  std::unique_ptr<FolderSink> sink;
  std::optional<CpuStreams> streams;
  uint64_t time = 1000;
  uint64_t delivered = 0;
  uint64_t lost = 0;
};

TEST_F(CpuStreamsTest, EventsOfAPacketThatCannotBeWrittenAreLostWithoutAGap) {
  Append(10);
  ASSERT_TRUE(Flush());
  const uint64_t bytes = streams->bytes();
  for (int i = 0; i < 3; i++) {
    Append(7);
    const FilesEndAt end(bytes + 20);
    ASSERT_FALSE(Flush());
  }
  EXPECT_EQ(streams->bytes(), bytes);
  EXPECT_EQ(streams->Records()[0].next_sequence, 2U);
  Append(5);
  ASSERT_TRUE(Flush());
  EXPECT_EQ(delivered, 15U);
  EXPECT_EQ(lost, 21U);
  EXPECT_FALSE(streams->pending());

  const auto packets = Packets(folder.path() / "t" / "user_2");
  ASSERT_EQ(packets.size(), 3U);
  for (size_t i = 0; i < packets.size(); i++) EXPECT_EQ(packets[i].sequence, i);
  EXPECT_EQ(packets[1].discarded, 0U);
  EXPECT_EQ(packets[2].discarded, 21U);
}

TEST_F(CpuStreamsTest, UnwrittenPacketsWaitForTheNextCommitAndDelayNothingElse) {
  Append(10);
  ASSERT_TRUE(Flush());
  {
    const FilesEndAt end(streams->bytes());
    Append(7);
    ASSERT_FALSE(Flush());
    EXPECT_FALSE(streams->pending());
    streams->CountMissing(2, 4, time, time);
    EXPECT_TRUE(streams->pending());
    ASSERT_FALSE(Flush());
    EXPECT_FALSE(streams->pending());
    ASSERT_FALSE(Flush());
    EXPECT_FALSE(streams->pending());
  }
  ASSERT_TRUE(Flush());
  const auto packets = Packets(folder.path() / "t" / "user_2");
  ASSERT_EQ(packets.size(), 3U);
  EXPECT_EQ(packets[2].discarded, 11U);
}

TEST_F(CpuStreamsTest, BoundsTheMissingEventsThatAHostileProgramClaims) {
  for (const uint64_t events : {~uint64_t{0}, uint64_t{5}, ~uint64_t{0}}) {
    streams->CountMissing(2, events, time, time);
    Append(1);
    ASSERT_TRUE(Flush());
  }
  {
    const FilesEndAt end(streams->bytes());
    Append(7);
    ASSERT_FALSE(Flush());
  }
  streams->CountMissing(2, 5, time, time);
  ASSERT_TRUE(Flush());
  const auto packets = Packets(folder.path() / "t" / "user_2");
  ASSERT_EQ(packets.size(), 5U);
  for (size_t i = 1; i < 4; i++) EXPECT_EQ(packets[i].discarded, kMaxMissing);
  EXPECT_EQ(packets[4].discarded, kMaxMissing + 7);
}

TEST_F(CpuStreamsTest, EventsAppendedDuringAWriteGoIntoTheNextPacket) {
  Append(10);
  Seal();
  Append(2);
  streams->CountMissing(2, 4, time, time);
  {
    const FilesEndAt end(200);
    streams->Write();
  }
  EXPECT_FALSE(Settle());
  EXPECT_EQ(lost, 10U);
  // This is the record of that commit: the four discarded events belong to the next one.
  EXPECT_EQ(streams->Records()[0].discarded, 10U);
  EXPECT_EQ(streams->Records()[0].next_sequence, 1U);
  Append(1);
  ASSERT_TRUE(Flush());
  EXPECT_EQ(delivered, 3U);
  EXPECT_EQ(streams->Records()[0].discarded, 14U);
  const auto packets = Packets(folder.path() / "t" / "user_2");
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[1].sequence, 1U);
  EXPECT_EQ(packets[1].discarded, 14U);
}

TEST_F(CpuStreamsTest, AStreamWhoseFirstPacketCannotBeWrittenBeginsWithTheNextOne) {
  {
    const FilesEndAt end(10);
    Append(3);
    ASSERT_FALSE(Flush());
  }
  EXPECT_EQ(lost, 3U);
  Append(4);
  ASSERT_TRUE(Flush());
  EXPECT_EQ(delivered, 4U);
  const auto packets = Packets(folder.path() / "t" / "user_2");
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].sequence, 0U);
  EXPECT_EQ(packets[0].discarded, 3U);
}

}  // namespace
}  // namespace weft::consumer
