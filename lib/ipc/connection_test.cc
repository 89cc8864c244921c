// SPDX-License-Identifier: Apache-2.0
// Messages and their descriptors arrive as they were sent; wrong ones are refused; a full socket
// queues; a closed one says so.
#include "lib/ipc/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "lib/ipc/limits.h"

namespace weft::ipc {
namespace {

using std::chrono::milliseconds;

struct Pair {
  Pair() {
    auto fds = Connection::MakePair();
    EXPECT_TRUE(fds.has_value());
    left = Connection(std::move(fds->first));
    right = Connection(std::move(fds->second));
  }
  Connection left, right;
};

UniqueFd Memfd() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

ino_t Inode(const UniqueFd& fd) {
  struct stat st{};
  EXPECT_EQ(fstat(fd.get(), &st), 0);
  return st.st_ino;
}

TEST(Channel, CarriesDescriptorsWithTheirMessage) {
  Pair pair;
  UniqueFd memfd = Memfd();
  const ino_t inode = Inode(memfd);
  ASSERT_TRUE(pair.left.Send(Ring{.channel_id = ~0ull,
                                  .instance = 7,
                                  .process = 1,
                                  .pid = 42,
                                  .uid = 1000,
                                  .procname = "a\"\x01\xff",
                                  .fd = std::move(memfd)}));
  auto message = pair.right.Wait(milliseconds(5000));
  ASSERT_TRUE(message.has_value()) << message.error().message;
  auto* ring = std::get_if<Ring>(&*message);
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->channel_id, ~0ull);
  EXPECT_EQ(ring->pid, 42);
  EXPECT_EQ(ring->procname, "a\"\x01\xef\xbf\xbd");  // what is no UTF-8 is replaced
  EXPECT_EQ(Inode(ring->fd), inode);
  EXPECT_NE(fcntl(ring->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Channel, CarriesNestedCounts) {
  Pair pair;
  SessionState state;
  state.phase = Phase::kReady;
  state.traces.push_back({.name = "a", .path = "p", .counts = {.recorded = 5}});
  state.traces[0].counts.lost["agent/late_ring"] = 3;
  state.notices = {"one", "two"};
  ASSERT_TRUE(pair.left.Send(std::move(state)));
  auto message = pair.right.Wait(milliseconds(5000));
  ASSERT_TRUE(message.has_value());
  const auto& got = std::get<SessionState>(*message);
  EXPECT_EQ(got.phase, Phase::kReady);
  ASSERT_EQ(got.traces.size(), 1u);
  EXPECT_EQ(got.traces[0].counts.recorded, 5u);
  EXPECT_EQ(got.traces[0].counts.lost.at("agent/late_ring"), 3u);
  EXPECT_EQ(got.notices.size(), 2u);
}

TEST(Channel, OptionalDescriptorMayBeMissing) {
  Pair pair;
  ASSERT_TRUE(pair.left.Send(FileAnswer{.request = 3, .error = 28}));
  auto message = pair.right.Wait(milliseconds(5000));
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(std::get<FileAnswer>(*message).fd.valid());
}

TEST(Channel, QueuesWhenTheSocketIsFullAndKeepsTheOrder) {
  Pair pair;
  uint64_t sent = 0;
  while (pair.left.Send(ProcessGone{.process = sent})) ++sent;
  EXPECT_GE(sent, kMaxQueuedMessages);
  for (uint64_t i = 0; i < sent; ++i) {
    ASSERT_TRUE(pair.left.Flush());
    auto message = pair.right.Wait(milliseconds(5000));
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(std::get<ProcessGone>(*message).process, i);
  }
}

TEST(Channel, EndIsSeenAfterAllMessages) {
  Pair pair;
  ASSERT_TRUE(pair.left.Send(Quit{}));
  pair.left.Close();
  EXPECT_TRUE(pair.right.Wait(milliseconds(5000)).has_value());
  auto end = pair.right.Wait(milliseconds(5000));
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code, ErrorCode::kClosed);
  auto send = pair.right.Send(Quit{});
  ASSERT_FALSE(send.has_value());
  EXPECT_EQ(send.error().code, ErrorCode::kClosed);
}

TEST(Codec, RefusesMalformedMessages) {
  for (const char* text :
       {"", "x", "[]", "{}", R"({"type":7})", R"({"type":"Nothing"})", R"({"type":"ProcessGone"})",
        R"({"type":"ProcessGone","process":-1})", R"({"type":"ProcessGone","process":"1"})",
        R"({"type":"ProcessGone","process":1.5})",
        R"({"type":"Hello","version":4294967296,"pid":1})",
        R"({"type":"ListenDoorbell","name":"","fd":0})"}) {
    Wire wire;
    wire.text = text;
    auto message = Decode(std::move(wire));
    ASSERT_FALSE(message.has_value()) << text;
    EXPECT_EQ(message.error().code, ErrorCode::kCorrupt) << text;
  }
}

TEST(Codec, OneDescriptorIsNotGivenTwice) {
  Wire wire;
  wire.text = R"({"type":"Arrived","key":"","doorbell":"","message":"","pid":1,"uid":0,"gid":0,)"
              R"("fd":0,"pidfd":0})";
  wire.fds.push_back(Memfd());
  EXPECT_FALSE(Decode(std::move(wire)).has_value());
}

TEST(Codec, PassesOverUnknownMembersAndDescriptors) {
  Wire wire;
  wire.text = R"({"type":"Drop","key":"k","later":{"a":[1]}})";
  wire.fds.push_back(Memfd());
  auto message = Decode(std::move(wire));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<Drop>(*message).key, "k");
}

// One of each kind, in scripts/fuzz_seeds.py; a message that is not there is not fuzzed in seconds.
TEST(Codec, DecodesTheSeedsOfItsFuzzTarget) {
  std::set<size_t> kinds;
  for (const auto& seed :
       std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/lib/ipc/ipc_codec_fuzz_corpus")) {
    std::ifstream file(seed.path());
    Wire wire;
    wire.text.assign(std::istreambuf_iterator<char>(file), {});
    for (int i = 0; i < 2; i++) wire.fds.push_back(Memfd());
    const auto message = Decode(std::move(wire));
    ASSERT_TRUE(message.has_value()) << seed.path() << message.error().message;
    kinds.insert(message->index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Message>);
}

TEST(Codec, DeepTextIsRefused) {
  Wire wire;
  wire.text = std::string(60'000, '[') + std::string(60'000, ']');
  EXPECT_FALSE(Decode(std::move(wire)).has_value());
}

TEST(Codec, TooLargeIsNotSent) {
  auto wire = Encode(Notice{.component = "c", .message = std::string(kMaxMessageBytes, 'x')});
  ASSERT_FALSE(wire.has_value());
  EXPECT_EQ(wire.error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace weft::ipc
