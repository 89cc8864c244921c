// SPDX-License-Identifier: Apache-2.0
#include "lib/store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/ctf/packet_writer.h"
#include "lib/ctf/test_trace.h"

namespace weft::store {
namespace {

using ctf::PacketWriter;
using ctf::ReadAll;
using ctf::TempFolder;

std::string_view Chars(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : maker_(UniqueFd(::open(folder_.path().c_str(), O_DIRECTORY | O_RDONLY))) {}

  TraceStore Open(const char* path = "t") {
    auto store = TraceStore::Open(maker_, path);
    EXPECT_TRUE(store.has_value()) << store.error().message;
    return std::move(*store);
  }
  std::string File(const std::string& name) { return ReadAll(folder_.path() + "/" + name); }
  void Write(const std::string& name, std::string_view bytes) {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << bytes;
  }

  TempFolder folder_;
  DirectoryFileMaker maker_;
};

TEST_F(StoreTest, MakesTheTreeThatReadersOfLttngKnow) {
  TraceStore store = Open(UserTracePath(1000).c_str());
  ASSERT_TRUE(store.AppendMetadata("a\n\n"));
  ASSERT_TRUE(store.AddStream("channel0", 3));
  EXPECT_EQ(File("ust/uid/1000/64-bit/metadata"), "a\n\n");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/ust/uid/1000/64-bit/channel0_3"));
}

TEST_F(StoreTest, MetadataIsOverwrittenInPlaceAndNotBehindItsEnd) {
  TraceStore store = Open();
  ASSERT_TRUE(store.AppendMetadata("range =  7;\n\n"));
  EXPECT_EQ(store.ReadMetadata(8, 2).value(), " 7");
  ASSERT_TRUE(store.OverwriteMetadata(8, "12"));
  EXPECT_EQ(File("t/metadata"), "range = 12;\n\n");
  EXPECT_EQ(store.metadata_bytes(), 13U);
  EXPECT_FALSE(store.OverwriteMetadata(12, "12"));
  EXPECT_FALSE(store.OverwriteMetadata(~uint64_t{0}, "12"));
  EXPECT_FALSE(store.ReadMetadata(12, 2));
  EXPECT_EQ(File("t/metadata"), "range = 12;\n\n");
}

TEST_F(StoreTest, AppendsWholePacketsOnceEach) {
  TraceStore store = Open();
  const size_t stream = store.AddStream("c", 0).value();
  PacketWriter writer{ctf::StreamConfig{}};
  std::string expected;
  for (int i = 0; i < 3; i++) {
    const auto packet = writer.Finish(static_cast<uint64_t>(i), 100);
    ASSERT_TRUE(store.WritePacket(stream, packet));
    ASSERT_TRUE(store.WritePacket(stream, packet));  // sent again
    expected += Chars(packet);
  }
  EXPECT_EQ(File("t/c_0"), expected);
  EXPECT_EQ(store.state(stream).packets, 3U);
  EXPECT_EQ(store.state(stream).last_sequence, 2U);
  EXPECT_EQ(store.state(stream).last_discarded, 2U);
  EXPECT_EQ(store.state(stream).last_time, 100U);
  EXPECT_EQ(store.total_bytes(), expected.size());
  EXPECT_TRUE(store.Sync());
}

// Direct writes where the file system has them; the file's bytes are the same everywhere.
TEST_F(StoreTest, LargePacketsLieOnPages) {
  TraceStore store = Open();
  const size_t stream = store.AddStream("c", 0).value();
  PacketWriter writer{ctf::StreamConfig{}};
  const auto channel = ctf::MakeChannel({.name = "c"}).value();
  const auto event =
      ctf::MakeEventClass(0, channel, {.name = "p:e", .fields = {{.name = "a", .elem_size = 8}}})
          .value();
  std::string expected;
  uint64_t number = 0;
  bool seen_large = false;
  const auto has_direct = [&] {
    return store.PacketBytes(stream, kDirectBytes + 1) != kDirectBytes + 1;
  };
  for (const size_t content : {100UL, 200000UL, 200001UL, 3000UL, 500000UL, 130000UL, 9UL}) {
    while (writer.bytes() < content) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&++number);
      ASSERT_EQ(writer.Append(number, channel, event, {bytes, 8}), ctf::Appended::kOk);
    }
    const size_t filled = writer.bytes();
    const size_t bytes = store.PacketBytes(stream, filled);
    EXPECT_GE(bytes, filled);
    const auto packet = writer.Finish(0, number, bytes);
    ASSERT_TRUE(store.WritePacket(stream, packet));
    expected += Chars(packet);
    EXPECT_EQ(store.state(stream).bytes, expected.size());
    seen_large = seen_large || content >= kDirectBytes;
    // Small packets behind a large one are also written directly, since the next large one begins
    // where they end.
    if (seen_large && has_direct()) {
      EXPECT_EQ(expected.size() % kDirectAlignment, 0U) << content;
    }
  }
  for (uint32_t small = 0; small < kSmallDirect; small++) {
    EXPECT_TRUE(expected.size() % kDirectAlignment == 0 || !has_direct());
    const auto packet = writer.Finish(0, number, store.PacketBytes(stream, writer.bytes()));
    ASSERT_TRUE(store.WritePacket(stream, packet));
    expected += Chars(packet);
  }
  EXPECT_EQ(store.PacketBytes(stream, writer.bytes()), writer.bytes());
  EXPECT_EQ(File("t/c_0"), expected);
  TraceStore again = Open();
  EXPECT_EQ(again.state(again.AddStream("c", 0).value()).packets, 7U + kSmallDirect);
}

// Packets of another maker, at the beginning of a page and elsewhere.
TEST_F(StoreTest, PadsPacketsThatWereMadeElsewhere) {
  const auto channel = ctf::MakeChannel({.name = "c"}).value();
  const auto event =
      ctf::MakeEventClass(0, channel, {.name = "p:e", .fields = {{.name = "a", .elem_size = 8}}})
          .value();
  for (const size_t at : {0UL, 8UL}) {
    TraceStore store = Open(at == 0 ? "t" : "u");
    const size_t stream = store.AddStream("c", 0).value();
    PacketWriter writer{ctf::StreamConfig{}};
    std::string expected;
    uint64_t number = 0;
    for (const size_t content :
         {100UL, 200000UL, 200001UL, 3000UL, 8000UL, 9000UL, 500000UL, 130000UL, 9UL}) {
      while (writer.bytes() < content) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(&++number);
        ASSERT_EQ(writer.Append(number, channel, event, {bytes, 8}), ctf::Appended::kOk);
      }
      const auto packet = writer.Finish(0, number);
      PageBuffer buffer(at + packet.size());
      const auto sent = buffer.span().subspan(at, packet.size());
      std::ranges::copy(packet, sent.begin());
      const uint64_t bytes = store.PacketBytes(stream, sent.size());
      ASSERT_TRUE(store.WritePadded(stream, sent, 1));
      EXPECT_TRUE(std::ranges::equal(packet, sent)) << "what came was changed";
      std::vector<uint8_t> stored(sent.begin(), sent.end());
      ctf::SetPacketBytes(stored, bytes);
      stored.resize(bytes);
      expected += Chars(stored);
      EXPECT_EQ(ctf::ReadPacketInfo(stored)->packet_bytes, bytes);
      EXPECT_EQ(ctf::ReadPacketInfo(stored)->content_bytes, packet.size());
      EXPECT_EQ(store.state(stream).bytes, expected.size());
    }
    EXPECT_EQ(File(store.state(stream).file), expected);
    TraceStore again = Open(at == 0 ? "t" : "u");
    EXPECT_EQ(again.state(again.AddStream("c", 0).value()).packets, 9U);
  }
}

TEST_F(StoreTest, RefusesPartialPackets) {
  TraceStore store = Open();
  const size_t stream = store.AddStream("c", 0).value();
  PacketWriter writer{ctf::StreamConfig{}};
  const auto packet = writer.Finish(0, 100);
  EXPECT_FALSE(store.WritePacket(stream, packet.first(packet.size() - 1)));
  std::vector<uint8_t> longer(packet.begin(), packet.end());
  longer.push_back(0);
  EXPECT_FALSE(store.WritePacket(stream, longer));
  EXPECT_FALSE(store.WritePacket(stream, {}));
  EXPECT_EQ(File("t/c_0"), "");
}

TEST_F(StoreTest, GoesOnWhereAKilledProcessStopped) {
  PacketWriter writer{ctf::StreamConfig{}};
  const std::string first(Chars(writer.Finish(0, 100)));
  const std::string second(Chars(writer.Finish(7, 200)));
  for (size_t cut = 0; cut <= second.size(); cut++) {
    {
      TraceStore store = Open();
      ASSERT_TRUE(store.AppendMetadata("one\n\n"));
    }
    Write("t/metadata", "one\n\ntwo\nhal");
    Write("t/c_0", first + second.substr(0, cut));
    TraceStore store = Open();
    EXPECT_EQ(store.metadata_bytes(), 5U);
    const size_t stream = store.AddStream("c", 0).value();
    const bool whole = cut == second.size();
    EXPECT_EQ(store.state(stream).packets, whole ? 2U : 1U);
    EXPECT_EQ(store.state(stream).last_time, whole ? 200U : 100U);
    EXPECT_EQ(File("t/c_0"), whole ? first + second : first);
    ASSERT_TRUE(store.WritePacket(
        stream, {reinterpret_cast<const uint8_t*>(second.data()), second.size()}));
    EXPECT_EQ(File("t/c_0"), first + second);
    ASSERT_TRUE(store.AppendMetadata("two\n\n"));
    EXPECT_EQ(File("t/metadata"), "one\n\ntwo\n\n");
    std::filesystem::remove_all(folder_.path() + "/t");
  }
}

TEST_F(StoreTest, PacketsFromANumberOnAreCutOff) {
  PacketWriter writer{ctf::StreamConfig{}};
  std::string packets[3];
  for (std::string& packet : packets) packet = Chars(writer.Finish(0, 100));
  Open();
  for (uint64_t before = 0; before <= 3; before++) {
    Write("t/c_0", packets[0] + packets[1] + packets[2]);
    TraceStore store = Open();
    const size_t stream = store.AddStream("c", 0, UINT64_MAX, before).value();
    EXPECT_EQ(store.state(stream).packets, before);
    EXPECT_EQ(File("t/c_0").size(), before * packets[0].size());
  }
}

TEST_F(StoreTest, NamesOfChunksAreReadAsTheyAreWritten) {
  for (const ChunkName& name : {ChunkName{"user_0"}, ChunkName{"user_0", 1, 0},
                                ChunkName{"a.1.2_7", UINT64_MAX, UINT64_MAX}}) {
    EXPECT_EQ(ParseChunkName(FormatChunkName(name)), name);
  }
  EXPECT_EQ(FormatChunkName({"user_0", 1024, 55555}), "user_0.1024.55555");
  for (const char* first :
       {"", ".", "..", "...", "user_0", "user_0.1", "user_0.01.2", "user_0.1.-2", "user_0.1.",
        ".1.2", "user_0..2", "user_0.0.2", "user_0.1.2x", "user_0.1.18446744073709551616"}) {
    EXPECT_EQ(ParseChunkName(first), ChunkName{first});
  }
}

class ChunksTest : public StoreTest {
 protected:
  static constexpr uint64_t kEvents = 10;  // of each packet

  ChunksTest() {
    PacketWriter writer{ctf::StreamConfig{}};
    for (std::string& packet : packets_) packet = Chars(writer.Finish(0, 100));
  }
  // Writes packets from the stream's next one on, and begins a chunk before each that is one of
  // `begins`.
  void WritePackets(TraceStore& store, size_t stream, uint64_t end,
                    const std::vector<uint64_t>& begins) {
    for (uint64_t i = store.next_sequence(stream); i < end; i++) {
      if (std::ranges::find(begins, i) != begins.end()) {
        ASSERT_TRUE(store.BeginChunk(stream));
      }
      const auto* bytes = reinterpret_cast<const uint8_t*>(packets_[i].data());
      ASSERT_TRUE(store.WritePacket(stream, {bytes, packets_[i].size()}, kEvents));
    }
  }
  // Adds the stream with packets before `before`.
  size_t Add(TraceStore& store, uint64_t before) {
    const auto added = store.AddChunks(maker_, "c", 0, before, before * kEvents);
    EXPECT_TRUE(added) << added.error().message;
    names_.clear();
    for (const auto& chunk : added->chunks) {
      names_.push_back(FormatChunkName(chunk.name));
      EXPECT_EQ(File("t/" + names_.back()).size(), chunk.bytes);
    }
    return added->stream;
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    const auto entries = maker_.List("t");
    for (const auto& entry : *entries) {
      if (entry.name != "metadata") names.push_back(entry.name);
    }
    std::ranges::sort(names);
    return names;
  }
  // The numbers of the packets in all chunks, in order.
  std::vector<uint64_t> Stored() {
    std::vector<std::pair<uint64_t, std::string>> chunks;
    for (const std::string& name : Files())
      chunks.emplace_back(ParseChunkName(name).sequence, name);
    std::ranges::sort(chunks);
    std::vector<uint64_t> stored;
    for (const auto& [sequence, name] : chunks) {
      const std::string bytes = File("t/" + name);
      for (size_t at = 0; at < bytes.size(); at += packets_[0].size()) {
        for (uint64_t i = 0; i < std::size(packets_); i++) {
          if (bytes.substr(at, packets_[i].size()) == packets_[i]) stored.push_back(i);
        }
      }
    }
    return stored;
  }
  static std::vector<uint64_t> From(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> numbers;
    for (; begin < end; begin++) numbers.push_back(begin);
    return numbers;
  }

  std::string packets_[8];
  std::vector<std::string> names_;
};

TEST_F(ChunksTest, AStreamGoesOnInItsNewestChunk) {
  {
    TraceStore store = Open();
    WritePackets(store, Add(store, 0), 7, {3, 6});
    EXPECT_TRUE(store.Sync());
  }
  EXPECT_EQ(Files(), (std::vector<std::string>{"c_0", "c_0.3.30", "c_0.6.60"}));
  TraceStore store = Open();
  const size_t stream = Add(store, 7);
  EXPECT_EQ(names_, Files());
  EXPECT_EQ(store.name(stream), "c_0");
  EXPECT_EQ(store.state(stream).file, "t/c_0.6.60");
  EXPECT_EQ(store.next_sequence(stream), 7U);
  WritePackets(store, stream, 8, {});
  EXPECT_EQ(Stored(), From(0, 8));
  EXPECT_EQ(store.events(stream), 80U);
}

TEST_F(ChunksTest, ACutFallsIntoAnyChunk) {
  for (uint64_t before = 0; before <= 7; before++) {
    SCOPED_TRACE(before);
    {
      TraceStore store = Open();
      WritePackets(store, Add(store, 0), 7, {3, 6});
    }
    TraceStore store = Open();
    const size_t stream = Add(store, before);
    EXPECT_EQ(Stored(), From(0, before));
    EXPECT_EQ(names_.size(), before <= 3 ? 1U : before <= 6 ? 2U : 3U);
    EXPECT_EQ(store.next_sequence(stream), before);
    WritePackets(store, stream, 8, {5});
    EXPECT_EQ(Stored(), From(0, 8));
    std::filesystem::remove_all(folder_.path() + "/t");
  }
}

// A relay can be killed between any two of its steps; the node then says what it knows.
TEST_F(ChunksTest, GoesOnWhereverAKilledProcessStopped) {
  const auto write = [this](uint64_t end) {
    TraceStore store = Open();
    const size_t stream = Add(store, 0);
    WritePackets(store, stream, end, {3, 6});
    return store;
  };
  // It has begun a chunk, and written nothing or a part of a packet into it.
  for (const std::string& part : {std::string(), packets_[6].substr(0, 50)}) {
    write(6);
    Write("t/c_0.6.60", part);
    for (const uint64_t before : {6, 5}) {
      TraceStore store = Open();
      const size_t stream = Add(store, before);
      EXPECT_EQ(Stored(), From(0, before));
      EXPECT_EQ(names_.size(), 2U);
      WritePackets(store, stream, 6, {});
    }
    std::filesystem::remove_all(folder_.path() + "/t");
  }
  // It has cut off some chunks of several.
  write(7);
  EXPECT_TRUE(maker_.Remove("t/c_0.6.60"));
  {
    TraceStore store = Open();
    WritePackets(store, Add(store, 2), 7, {4});
    EXPECT_EQ(Stored(), From(0, 7));
  }
}

TEST_F(ChunksTest, RemovedChunksStayRemoved) {
  {
    TraceStore store = Open();
    WritePackets(store, Add(store, 0), 7, {3, 6});
  }
  for (const char* removed : {"t/c_0", "t/c_0", "t/c_0.3.30"}) EXPECT_TRUE(maker_.Remove(removed));
  {
    TraceStore store = Open();
    const size_t stream = Add(store, 7);
    EXPECT_EQ(names_, (std::vector<std::string>{"c_0.6.60"}));
    // An empty chunk is what is left of a stream.
    ASSERT_TRUE(store.BeginChunk(stream));
    EXPECT_TRUE(maker_.Remove("t/c_0.6.60"));
  }
  {
    TraceStore store = Open();
    const size_t stream = Add(store, 7);
    EXPECT_EQ(names_, (std::vector<std::string>{"c_0.7.70"}));
    EXPECT_EQ(store.next_sequence(stream), 7U);
    WritePackets(store, stream, 8, {});
    EXPECT_EQ(Stored(), From(7, 8));
  }
  // A node that knows less than what was removed makes these packets again.
  TraceStore store = Open();
  const size_t stream = Add(store, 5);
  EXPECT_EQ(names_, (std::vector<std::string>{"c_0.5.50"}));
  EXPECT_EQ(Files(), names_);
  EXPECT_EQ(store.next_sequence(stream), 5U);
}

TEST_F(ChunksTest, AFolderIsListedAndLeftByNoLink) {
  EXPECT_EQ(maker_.List("none").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(maker_.List(".."));
  EXPECT_FALSE(maker_.Remove("../x"));
  const TempFolder outside;
  std::ofstream(outside.path() + "/x") << "x";
  ASSERT_EQ(::symlink(outside.path().c_str(), (folder_.path() + "/link").c_str()), 0);
  EXPECT_TRUE(maker_.List("")->empty());
  EXPECT_FALSE(maker_.List("link"));
  EXPECT_FALSE(maker_.Remove("link/x"));
  EXPECT_EQ(ReadAll(outside.path() + "/x"), "x");
}

TEST_F(StoreTest, MetadataOfEveryVersionIsFoundWholeAgain) {
  for (const auto version : {ctf::Version::k1_8, ctf::Version::k2}) {
    ctf::TraceInfo info{.version = version, .env = ctf::MakeEnv({.hostname = "h\n\n"})};
    const auto channel = ctf::MakeChannel({.name = "c\n\n"}).value();
    const auto event = ctf::MakeEventClass(0, channel, {.name = "e\n\n\nx"}).value();
    std::string all;
    TraceStore store = Open();
    for (const std::string& fragment :
         {ctf::TraceMetadata(info), ctf::ChannelMetadata(info, channel),
          ctf::EventMetadata(info, event)}) {
      EXPECT_TRUE(fragment.ends_with("\n\n"));
      EXPECT_EQ(fragment.find("\n\n"), fragment.size() - 2);
      ASSERT_TRUE(store.AppendMetadata(fragment));
      Write("t/metadata", all + fragment.substr(0, fragment.size() - 1));
      EXPECT_EQ(Open().metadata_bytes(), all.size());
      all += fragment;
      Write("t/metadata", all);
      EXPECT_EQ(Open().metadata_bytes(), all.size());
    }
    std::filesystem::remove_all(folder_.path() + "/t");
  }
}

// This runs in a child, since the limit on file sizes is the process's.
TEST_F(StoreTest, AFullDiskLeavesWholePacketsAndTheNextWriteWorks) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    TraceStore store = Open();
    const size_t stream = store.AddStream("c", 0).value();
    PacketWriter writer{ctf::StreamConfig{}};
    const rlimit small{100, RLIM_INFINITY};
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const bool one = store.WritePacket(stream, writer.Finish(0, 1)).has_value();
    const auto packet = writer.Finish(0, 2);
    const auto failed = store.WritePacket(stream, packet);
    const bool cut = File("t/c_0").size() == 84;
    const auto meta = store.AppendMetadata(std::string(200, 'x') + "\n\n");
    const bool no_meta = !meta && meta.error().sys_errno == EFBIG && File("t/metadata").empty();
    ::setrlimit(RLIMIT_FSIZE, &large);
    const bool again = store.WritePacket(stream, packet).has_value() && File("t/c_0").size() == 168;
    const bool told = !failed && failed.error().code == ErrorCode::kIo;
    ::_exit(one && told && cut && no_meta && again ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(StoreTest, RefusesNamesOutsideTheFolder) {
  for (const char* name : {"", "/etc/x", "..", "a/../b", "a//b", "a/", "./a", "a/."}) {
    EXPECT_FALSE(CheckRelativeName(name)) << name;
    EXPECT_FALSE(maker_.OpenFile(name)) << name;
  }
  EXPECT_FALSE(CheckRelativeName(std::string_view("a\0b", 3)));
  EXPECT_TRUE(CheckRelativeName("a/..b/c_0"));
}

TEST_F(StoreTest, FollowsNoSymbolicLink) {
  const TempFolder outside;
  ASSERT_EQ(::symlink(outside.path().c_str(), (folder_.path() + "/link").c_str()), 0);
  ASSERT_EQ(::symlink((outside.path() + "/x").c_str(), (folder_.path() + "/file").c_str()), 0);
  EXPECT_FALSE(maker_.OpenFile("link/x"));
  EXPECT_FALSE(maker_.OpenFile("file"));
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
}

}  // namespace
}  // namespace weft::store
