// SPDX-License-Identifier: Apache-2.0
// What the relay removes, and what it counts for it, with an archive on a real folder. The clock
// and the volume's free space are the test's.
#include "relay/ingest/retention.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <sstream>

#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/test_trace.h"
#include "relay/ingest/archive.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

constexpr uint64_t kPacketBytes = uint64_t{64} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint32_t kEvents = 10;  // of each packet, as the node says
constexpr uint64_t kChunkPackets = kMinChunkBytes / kPacketBytes;

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() : maker_(UniqueFd(::open(folder_.path().c_str(), O_DIRECTORY | O_RDONLY))) {
    limits_.chunk_bytes = kMinChunkBytes;
    Start();
  }

  // A relay starts; the one before was killed.
  void Start() {
    archive_.reset();
    retention_.reset();
    metrics_.emplace(metrics::Part::kRelay);
    retention_.emplace(
        maker_, *metrics_, limits_,
        Volume{.now = [this] { return now_; }, .free_bytes = [this] { return free_; }});
    ASSERT_TRUE(retention_->Scan());
    archive_.emplace(maker_, safe_, *metrics_, rates_, *retention_,
                     [this](const stream::Hello&) { return asked_; });
  }

  struct Node {
    uint64_t trace = 0;
    uint64_t handle = 0;
    uint64_t next = 0;  // packet
    std::string folder;
    Status last;  // of the last packet
  };
  // Opens the stream user_0 of a pod, which has so many packets.
  Node Open(const std::string& name_space, const std::string& trace, uint64_t next = 0) {
    Node node{.next = next,
              .folder = name_space + "/" + trace + "/pod/app/" + FormatUuid(kUuid) + "/kernel"};
    const auto opened = archive_->OpenTrace({.node = "n",
                                             .kubernetes_namespace = name_space,
                                             .trace = trace,
                                             .trace_uid = "",
                                             .ticket = ""},
                                            {.trace = 1,
                                             .pod = "pod",
                                             .pod_uid = "",
                                             .container = "app",
                                             .uuid = FormatUuid(kUuid),
                                             .path = "kernel",
                                             .metadata = 0});
    EXPECT_TRUE(opened) << opened.error().message;
    node.trace = opened->key;
    const auto stream = archive_->OpenStream(
        node.trace,
        {.trace = 1, .stream = 1, .channel = "user", .cpu = 0, .next = next, .events = next * 10});
    EXPECT_TRUE(stream) << stream.error().message;
    node.handle = stream->handle;
    EXPECT_EQ(stream->next, next);
    return node;
  }
  // Sends packets that span so much time each.
  void Send(Node& node, uint64_t packets, uint64_t span = 50) {
    for (uint64_t i = 0; i < packets; i++) {
      // An empty packet, with padding.
      ctf::PacketWriter writer({.trace_uuid = kUuid, .first_sequence = node.next});
      std::ranges::copy(writer.Finish(0, 100), packet_.begin());
      const uint64_t numbers[] = {node.next * 100, node.next * 100 + span, 84 * 8,
                                  kPacketBytes * 8};
      std::memcpy(packet_.data() + 32, numbers, sizeof(numbers));  // docs/formats/ctf.md: Packet
      node.last = archive_->StorePacket(
          node.handle, {.stream_handle = node.handle, .seq = node.next, .events = kEvents},
          packet_);
      if (!node.last) return;
      node.next++;
    }
  }
  void Pass(std::chrono::seconds time) {
    now_ += time;
    archive_->Tick();
  }
  uint64_t Sum(const std::string& family, const std::string& label = "") {
    uint64_t sum = 0;
    std::istringstream page(metrics_->Text());
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with(family + "{") && line.find(label) != std::string::npos) {
        sum += std::stoull(line.substr(line.rfind(' ')));
      }
    }
    return sum;
  }
  uint64_t Removed(const std::string& label = "") {
    return Sum("weft_relay_removed_events_total", label);
  }
  std::vector<std::string> Files(const Node& node) {
    std::vector<std::string> names;
    const auto entries = maker_.List(node.folder);
    for (const auto& entry : *entries) {
      if (entry.name != "metadata") names.push_back(entry.name);
    }
    std::ranges::sort(names);
    return names;
  }
  // Packets in all chunks.
  uint64_t Kept(const Node& node) {
    uint64_t bytes = 0;
    const auto entries = maker_.List(node.folder);
    for (const auto& entry : *entries) {
      if (entry.name != "metadata") bytes += entry.bytes;
    }
    return bytes / kPacketBytes;
  }

  static constexpr Uuid kUuid{1, 2, 3};
  ctf::TempFolder folder_;
  store::DirectoryFileMaker maker_;
  StorageLimits limits_;
  TraceLimits asked_;  // by every Trace
  Retention::Time now_ = std::chrono::system_clock::now();
  uint64_t free_ = UINT64_MAX;
  std::optional<metrics::Registry> metrics_;
  store::SafeReads safe_;
  relay_rates::TraceRates rates_;
  std::optional<Retention> retention_;
  std::optional<DiskArchive> archive_;
  std::vector<uint8_t> packet_ = std::vector<uint8_t>(kPacketBytes);
};

TEST_F(RetentionTest, AStreamIsWrittenIntoChunks) {
  Node node = Open("ns", "t");
  Send(node, 2 * kChunkPackets + 1);
  EXPECT_EQ(Files(node), (std::vector<std::string>{"user_0", "user_0.4.40", "user_0.8.80"}));
  EXPECT_EQ(Kept(node), node.next);
  EXPECT_EQ(Removed(), 0U);
}

TEST_F(RetentionTest, ATraceLosesItsOldestChunksForItsShare) {
  limits_.trace_bytes = kMiB;
  Start();
  Node small = Open("ns", "small");
  Send(small, 1);
  Node node = Open("ns", "t");
  Send(node, 100);
  ASSERT_TRUE(node.last) << node.last.error().message;
  EXPECT_LE(Kept(node) * kPacketBytes, kMiB);
  EXPECT_GE(Kept(node) * kPacketBytes, kMiB - kMinChunkBytes);
  EXPECT_EQ(Removed("reason=\"trace_size\""), (100 - Kept(node)) * kEvents);
  EXPECT_EQ(Removed(), Removed("trace=\"t\""));
  EXPECT_EQ(Sum("weft_relay_removed_bytes_total"), (100 - Kept(node)) * kPacketBytes);
  EXPECT_EQ(Sum("weft_events_delivered_total", "trace=\"t\""), 100 * kEvents);
  EXPECT_EQ(Kept(small), 1U);
  archive_->Tick();
  EXPECT_EQ(Sum("weft_relay_stored_bytes"), (Kept(node) + 1) * kPacketBytes);
}

TEST_F(RetentionTest, ATraceAsksForLessThanItMayHave) {
  limits_.trace_bytes = 4 * kMiB;
  Start();
  Node node = Open("ns", "t");
  Send(node, 100);
  EXPECT_GT(Kept(node) * kPacketBytes, 3 * kMiB);
  asked_.bytes = kMiB;  // it is changed while it records
  archive_->Tick();
  Send(node, 1);
  EXPECT_LE(Kept(node) * kPacketBytes, kMiB);
  asked_ = {.bytes = 64 * kMiB, .age = std::chrono::seconds(60)};
  Pass(std::chrono::seconds(1));
  Send(node, 100);
  EXPECT_LE(Kept(node) * kPacketBytes, 4 * kMiB);
  EXPECT_EQ(Removed("reason=\"age\""), 0U);
  Pass(std::chrono::seconds(62));
  EXPECT_GT(Removed("reason=\"age\""), 0U);
}

TEST_F(RetentionTest, ManyStreamsOfASmallShareAllGoOn) {
  limits_.trace_bytes = kMiB;
  Start();
  // More than the share has packets: each stream's newest chunk alone exceeds it.
  std::vector<Node> nodes;
  for (int i = 0; i < 20; i++) nodes.push_back(Open("ns", "t" + std::to_string(i)));
  for (Node& node : nodes) Send(node, 20);
  for (const Node& node : nodes) EXPECT_TRUE(node.last);
}

TEST_F(RetentionTest, ANamespaceLosesForItsShareAndNoOtherOne) {
  limits_.namespace_bytes = 2 * kMiB;
  Start();
  Node other = Open("other", "t");
  Send(other, 20);
  Node old = Open("ns", "old");
  Send(old, 20);
  now_ += std::chrono::seconds(5);
  archive_->Tick();
  Node node = Open("ns", "new");
  Send(node, 24);
  EXPECT_EQ(Kept(other), 20U);
  EXPECT_EQ(Kept(node), 24U) << "the oldest chunks are those of the other Trace";
  EXPECT_EQ(Removed("reason=\"namespace_size\""), (20 - Kept(old)) * kEvents);
  EXPECT_GT(Removed("trace=\"old\""), 0U);
  EXPECT_EQ(Removed(), Removed("trace=\"old\""));
}

TEST_F(RetentionTest, ForFreeSpaceTheLargestNamespaceLoses) {
  limits_.free_bytes = 10 * kMiB;
  Start();
  Node small = Open("small", "t");
  Send(small, 10);
  now_ += std::chrono::seconds(5);
  archive_->Tick();
  Node large = Open("large", "t");
  Send(large, 100);
  EXPECT_EQ(Removed(), 0U);
  free_ = 9 * kMiB;
  Send(small, 16);
  EXPECT_TRUE(small.last);
  EXPECT_EQ(Kept(small), 26U);
  EXPECT_GT(Removed("namespace=\"large\",reason=\"free_space\""), 0U) << metrics_->Text();
  EXPECT_EQ(Removed(), (100 - Kept(large)) * kEvents);
  EXPECT_LT(100 - Kept(large), 3 * kMiB / kPacketBytes) << "no more than was lacking";
  // When nothing is left but what is being written, the volume is full.
  free_ = 0;
  for (int i = 0; i < 10 && small.last; i++) Send(small, 20);
  EXPECT_FALSE(small.last);
  EXPECT_EQ(small.last.error().code, ErrorCode::kLimit);
  free_ = UINT64_MAX;
  Send(small, 1);
  EXPECT_TRUE(small.last);
}

TEST_F(RetentionTest, OldEventsGoAndTheStreamGoesOn) {
  limits_.age = std::chrono::hours(1);
  Start();
  Node node = Open("ns", "t");
  Send(node, 6);
  Pass(std::chrono::minutes(30));
  Send(node, 1);
  Pass(std::chrono::minutes(31));
  EXPECT_EQ(Removed("reason=\"age\""), 60U);
  EXPECT_EQ(Kept(node), 1U) << "it has begun a chunk of its own, for the age of the one before";
  // Nothing comes any more: the newest chunk ends, and goes when it is old.
  Pass(std::chrono::minutes(20));
  Pass(std::chrono::minutes(50));
  EXPECT_EQ(Kept(node), 0U);
  EXPECT_EQ(Removed(), 70U);
  EXPECT_EQ(Files(node), (std::vector<std::string>{"user_0.7.70"}));
  Send(node, 1);
  EXPECT_TRUE(node.last);
  EXPECT_EQ(Kept(node), 1U);
}

TEST_F(RetentionTest, ANewRelayGoesOnWithWhatIsThere) {
  limits_.trace_bytes = kMiB;
  Start();
  Node node = Open("ns", "t");
  Send(node, 50);
  const uint64_t removed = 50 - Kept(node);
  Start();
  EXPECT_EQ(Removed(), 0U);
  node = Open("ns", "t", 50);
  Send(node, 50);
  ASSERT_TRUE(node.last);
  EXPECT_EQ(Removed(), (100 - Kept(node) - removed) * kEvents);
  EXPECT_LE(Kept(node) * kPacketBytes, kMiB);
}

TEST_F(RetentionTest, AnEndedTraceGoesWhole) {
  limits_.age = std::chrono::hours(1);
  for (const bool is_killed : {false, true}) {
    Start();
    Node node = Open("ns", is_killed ? "b" : "a");
    Send(node, 5);
    Send(node, 1, 0);  // a packet with one event
    EXPECT_EQ(archive_->EndTrace(node.trace)->packets, 6U);
    EXPECT_EQ(Files(node).back(), "user_0.6.60");
    if (is_killed) {
      Start();
    } else {
      archive_->CloseTrace(node.trace);
    }
    Pass(std::chrono::minutes(62));
    EXPECT_EQ(Kept(node), 0U);
    EXPECT_EQ(Removed(), 60U);
  }
}

TEST_F(RetentionTest, TheLastPacketsOfAClosedStreamStayForAWhile) {
  limits_.namespace_bytes = kMiB;
  Start();
  Node closed = Open("ns", "closed");
  Send(closed, 4);
  archive_->CloseTrace(closed.trace);
  Pass(std::chrono::seconds(1));
  Node node = Open("ns", "t");
  Send(node, 30);
  ASSERT_TRUE(node.last);
  EXPECT_EQ(Kept(closed), 4U);
  Pass(kSettled);
  Send(node, 30);
  EXPECT_EQ(Kept(closed), 0U);
  EXPECT_EQ(Files(closed), (std::vector<std::string>{"user_0.4.40"}));
  // The node comes back: it goes on behind what was removed.
  closed = Open("ns", "closed", 4);
  Send(closed, 1);
  EXPECT_TRUE(closed.last);
}

TEST_F(RetentionTest, FilesOfTheFutureGrowOldFromTheRelaysStartOn) {
  limits_.age = std::chrono::hours(1);
  Start();
  Node node = Open("ns", "t");
  Send(node, 5);
  archive_->CloseTrace(node.trace);
  now_ -= std::chrono::hours(5);
  Start();
  Pass(std::chrono::minutes(58));
  EXPECT_EQ(Kept(node), 5U);
  Pass(std::chrono::minutes(4));
  EXPECT_EQ(Kept(node), 0U);
}

TEST_F(RetentionTest, WhatAKilledRelayWroteLastIsCountedByReadingIt) {
  limits_.age = std::chrono::hours(1);
  Start();
  // A real trace: the file says how many events it has.
  ctf::TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "user"});
  const ctf::EventClass& event =
      trace.AddEvent(0, channel, {.name = "p:e", .fields = {{.name = "a", .elem_size = 4}}});
  const size_t stream = trace.AddStream(channel, 0);
  for (uint32_t i = 0; i < 123; i++) {
    const auto* body = reinterpret_cast<const uint8_t*>(&i);
    ASSERT_EQ(trace.writer(stream).Append(ctf::TestTrace::kStart + i, channel, event, {body, 4}),
              ctf::Appended::kOk);
  }
  trace.Finish(stream, 0, ctf::TestTrace::kStart + 200);
  const std::string at = folder_.path() + "/ns/t/pod/app/" + FormatUuid(kUuid) + "/kernel/";
  std::filesystem::create_directories(at);
  for (const char* file : {"metadata", "user_0"}) {
    std::filesystem::copy(trace.path() + "/" + file, at + file);
  }
  Start();
  Pass(std::chrono::hours(2));
  EXPECT_EQ(Removed("reason=\"age\""), 123U);
  EXPECT_TRUE(std::filesystem::exists(at + "user_0.2.123"));
  EXPECT_FALSE(std::filesystem::exists(at + "user_0"));
}

}  // namespace
}  // namespace weft::ingest
