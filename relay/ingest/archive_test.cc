// SPDX-License-Identifier: Apache-2.0
// What sessions open, cut and store on the disk, and what is counted for it.
#include "relay/ingest/archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/ctf/test_trace.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() : maker(UniqueFd(::open(folder.path().c_str(), O_DIRECTORY | O_RDONLY))) {}

  stream::OpenTrace What(uint64_t metadata = 0) const {
    return {.trace = 1,
            .pod = "pod-0",
            .pod_uid = "",
            .container = "app",
            .uuid = FormatUuid(uuid),
            .path = "ust/uid/1/64-bit",
            .metadata = metadata};
  }
  stream::OpenStream Stream(uint64_t next = 0, uint64_t events = 0) const {
    return {.trace = 1, .stream = 1, .channel = "user", .cpu = 3, .next = next, .events = events};
  }
  Status Store(uint64_t handle, uint64_t seq, uint32_t events) {
    ctf::PacketWriter writer({.trace_uuid = uuid, .first_sequence = seq});
    return archive.StorePacket(handle, {.stream_handle = handle, .seq = seq, .events = events},
                               writer.Finish(0, 100));
  }
  // `uid`: the Trace's, with a slash.
  std::string File(const std::string& name, const std::string& uid = "") {
    return ctf::ReadAll(folder.path() + "/ns/t/" + uid + "pod-0/app/" + FormatUuid(uuid) +
                        "/ust/uid/1/64-bit/" + name);
  }
  bool Counted(const std::string& sample) {
    return metrics.Text().find(sample + "\n") != std::string::npos;
  }

  ctf::TempFolder folder;
  store::DirectoryFileMaker maker;
  metrics::Registry metrics{metrics::Part::kRelay};
  relay_rates::Clock::time_point now{std::chrono::seconds(100)};
  relay_rates::TraceRates rates{[this] { return now; }};
  store::SafeReads safe{store::SafeReads::Clock::now() - std::chrono::hours(1)};
  Retention retention{maker, metrics, {}};
  DiskArchive archive{maker, safe, metrics, rates, retention};
  const Uuid uuid{1, 2, 3};
  const stream::Hello who{
      .node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""};
};

TEST_F(ArchiveTest, ATraceIsAFolderOfItsPodAndContainer) {
  const auto trace = archive.OpenTrace(who, What());
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_TRUE(archive.WriteMetadata(trace->key, 0, "range 1\n\n"));
  ASSERT_TRUE(archive.WriteMetadata(trace->key, 6, "2"));
  EXPECT_FALSE(archive.WriteMetadata(trace->key, 10, "x"));
  const auto stream = archive.OpenStream(trace->key, Stream());
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->next, 0U);
  ASSERT_TRUE(Store(stream->handle, 0, 5));
  EXPECT_EQ(File("metadata"), "range 2\n\n");
  EXPECT_EQ(File("user_3").size(), 84U);
  EXPECT_EQ(archive.EndTrace(trace->key)->packets, 1U);
  EXPECT_TRUE(Counted("weft_events_delivered_total{namespace=\"ns\",trace=\"t\"} 5"));
}

TEST_F(ArchiveTest, ATraceMadeAgainHasAFolderOfItsOwn) {
  const std::string uids[] = {"7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10",
                              "0a1b2c3d-6a1a-4d31-8f5c-2d3a5b7c9e10"};
  std::vector<uint64_t> traces;
  for (const std::string& uid : uids) {
    stream::Hello hello = who;
    hello.trace_uid = uid;
    const auto trace = archive.OpenTrace(hello, What());
    ASSERT_TRUE(trace) << trace.error().message;
    traces.push_back(trace->key);
  }
  // Both stay open, and neither gets what belongs to the other.
  ASSERT_TRUE(archive.WriteMetadata(traces[0], 0, "old\n\n"));
  ASSERT_TRUE(archive.WriteMetadata(traces[1], 0, "new\n\n"));
  EXPECT_EQ(File("metadata", uids[0] + "/"), "old\n\n");
  EXPECT_EQ(File("metadata", uids[1] + "/"), "new\n\n");
}

TEST_F(ArchiveTest, CutsOffWhatTheNodeDoesNotKnowToBeStored) {
  auto trace = archive.OpenTrace(who, What());
  ASSERT_TRUE(archive.WriteMetadata(trace->key, 0, "one\n\ntwo\n\n"));
  auto stream = archive.OpenStream(trace->key, Stream());
  for (uint64_t seq = 0; seq < 3; seq++) ASSERT_TRUE(Store(stream->handle, seq, 10));
  const uint64_t old = stream->handle;
  trace = archive.OpenTrace(who, What(5));
  EXPECT_EQ(trace->metadata, 5U);
  EXPECT_EQ(File("metadata"), "one\n\n");
  stream = archive.OpenStream(trace->key, Stream(1, 10));
  EXPECT_EQ(stream->next, 1U);
  EXPECT_EQ(File("user_3").size(), 84U);
  // The session before has nothing to say any more.
  EXPECT_EQ(Store(old, 1, 10).error().code, ErrorCode::kClosed);
  // A counter does not fall, and counts nothing twice.
  EXPECT_TRUE(Counted("weft_events_delivered_total{namespace=\"ns\",trace=\"t\"} 30"));
  ASSERT_TRUE(Store(stream->handle, 1, 15));
  ASSERT_TRUE(Store(stream->handle, 2, 10));
  EXPECT_TRUE(Counted("weft_events_delivered_total{namespace=\"ns\",trace=\"t\"} 35"));
}

TEST_F(ArchiveTest, ARelayThatStartsAgainCountsWhatWasStoredBefore) {
  const auto trace = archive.OpenTrace(who, What());
  ASSERT_TRUE(archive.OpenStream(trace->key, Stream(0, 40)));
  EXPECT_TRUE(Counted("weft_events_delivered_total{namespace=\"ns\",trace=\"t\"} 40"));
}

TEST_F(ArchiveTest, SaysHowFarReadingIsSafe) {
  const auto now = store::SafeReads::Clock::now;
  const std::string folder = "ns/t/pod-0/app/" + FormatUuid(uuid) + "/ust/uid/1/64-bit";
  const auto find = [&](uint64_t size, auto when) {
    return safe.Look("ns/t", when).Find(folder + "/user_3", size);
  };
  EXPECT_FALSE(find(84, now()).live);
  const auto trace = archive.OpenTrace(who, What());
  const auto stream = archive.OpenStream(trace->key, Stream());
  for (uint64_t seq = 0; seq < 3; seq++) ASSERT_TRUE(Store(stream->handle, seq, 1));
  EXPECT_TRUE(find(252, now()).live);
  EXPECT_EQ(find(252, now()).kept, 0U);
  archive.Keep(stream->handle, 2);
  archive.Promise(trace->key, 500);
  EXPECT_EQ(find(252, now()).kept, 168U);
  EXPECT_EQ(find(252, now()).time_ns, 500U);
  // With the other traces of its session, then with a time of its own again, at least that one.
  archive.Follow(trace->key, 7);
  EXPECT_EQ(find(252, now()).time_ns, 500U);
  archive.PromiseAll(7, 600);
  EXPECT_EQ(find(252, now()).time_ns, 600U);
  archive.Promise(trace->key, 0);
  archive.PromiseAll(7, 700);
  EXPECT_EQ(find(252, now()).time_ns, 600U);
  archive.CloseSession(7);
  archive.PromiseAll(8, 800);
  archive.Follow(trace->key, 8);
  // A node that is away may come back and have packets cut off; later no reader waits for it.
  archive.CloseTrace(trace->key);
  EXPECT_TRUE(find(252, now()).live);
  EXPECT_EQ(find(252, now()).kept, 168U);
  EXPECT_EQ(find(252, now()).time_ns, 800U);
  EXPECT_FALSE(find(252, now() + std::chrono::seconds(11)).live);
  EXPECT_EQ(find(252, now() + std::chrono::seconds(11)).kept, 252U);
  // One that has ended is whole at once.
  const auto again = archive.OpenTrace(who, What());
  EXPECT_TRUE(find(252, now()).live);
  ASSERT_TRUE(archive.EndTrace(again->key));
  archive.CloseTrace(again->key);
  EXPECT_FALSE(find(252, now()).live);
}

TEST_F(ArchiveTest, WhatStaysIsKnownAcrossChunks) {
  StorageLimits small;
  small.chunk_bytes = kMinChunkBytes;
  Retention chunked(maker, metrics, small);
  DiskArchive chunks(maker, safe, metrics, rates, chunked);
  const auto trace = chunks.OpenTrace(who, What());
  const auto stream = chunks.OpenStream(trace->key, Stream());
  for (uint64_t seq = 0; seq < 3; seq++) {
    ctf::PacketWriter writer({.trace_uuid = uuid, .first_sequence = seq});
    std::vector<uint8_t> packet(kMinChunkBytes);
    std::ranges::copy(writer.Finish(0, 100), packet.begin());
    const uint64_t numbers[] = {seq * 100, seq * 100 + 50, 84 * 8, kMinChunkBytes * 8};
    std::memcpy(packet.data() + 32, numbers, sizeof(numbers));  // docs/formats/ctf.md: Packet
    ASSERT_TRUE(chunks.StorePacket(
        stream->handle, {.stream_handle = stream->handle, .seq = seq, .events = 1}, packet));
  }
  const std::string path = "ns/t/pod-0/app/" + FormatUuid(uuid) + "/ust/uid/1/64-bit/";
  const auto kept = [&](const std::string& name) {
    return safe.Look("ns/t").Find(path + name, kMinChunkBytes).kept;
  };
  EXPECT_EQ(kept("user_3"), 0U);
  chunks.Keep(stream->handle, 2);
  EXPECT_EQ(kept("user_3"), kMinChunkBytes);
  EXPECT_EQ(kept("user_3.1.1"), kMinChunkBytes);
  EXPECT_EQ(kept("user_3.2.2"), 0U);
  chunks.Keep(stream->handle, 3);
  EXPECT_EQ(kept("user_3.2.2"), kMinChunkBytes);
}

TEST_F(ArchiveTest, LossesAreTotals) {
  const auto trace = archive.OpenTrace(who, What());
  for (const uint64_t full : {3, 3, 2, 7}) {
    archive.Report(trace->key,
                   {.trace = 1, .discarded = {{"full", full}}, .lost = {{"store/write", 1}}});
  }
  archive.Report(trace->key, {.trace = 1, .discarded = {{"no \"word\"", 1}}, .lost = {}});
  const std::string labels = "{namespace=\"ns\",reason=\"full\",trace=\"t\"} 7";
  EXPECT_TRUE(Counted("weft_relay_reported_discarded_total" + labels)) << metrics.Text();
  EXPECT_TRUE(
      Counted("weft_relay_reported_lost_total{namespace=\"ns\",reason=\"write\",stage=\"store\","
              "trace=\"t\"} 1"));
  EXPECT_NE(metrics.Text().find("reason=\"other\""), std::string::npos);
}

TEST_F(ArchiveTest, RatesAreOfWhatArrives) {
  auto trace = archive.OpenTrace(who, What());
  ASSERT_TRUE(archive.WriteMetadata(trace->key, 0, "x\n\n"));
  auto stream = archive.OpenStream(trace->key, Stream(0, 40));
  ASSERT_TRUE(Store(stream->handle, 0, 5));
  archive.Report(trace->key, {.trace = 1, .discarded = {{"full", 3}}, .lost = {{"store/x", 2}}});
  // The node connects again, and reports what it has reported already.
  trace = archive.OpenTrace(who, What(3));
  archive.Report(trace->key, {.trace = 1, .discarded = {{"full", 4}}, .lost = {{"store/x", 2}}});
  now += std::chrono::seconds(1);
  const auto pods = rates.Of("ns/t", 1);
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods[0].pod, "pod-0");
  EXPECT_EQ(pods[0].seconds.at(0),
            (relay_rates::Counts{.events = 5, .bytes = 84, .discarded = 4, .lost = 2}));
}

TEST_F(ArchiveTest, WhatWasReportedToAnEarlierRelayIsNoRate) {
  auto trace = archive.OpenTrace(who, What());
  ASSERT_TRUE(archive.WriteMetadata(trace->key, 0, "x\n\n"));
  relay_rates::TraceRates later;
  Retention retention_again(maker, metrics, {});
  DiskArchive again(maker, safe, metrics, later, retention_again);
  trace = again.OpenTrace(who, What(3));
  again.Report(trace->key, {.trace = 1, .discarded = {{"full", 1000}}, .lost = {}});
  EXPECT_TRUE(later.Of("ns/t", 1).empty());
  again.Report(trace->key, {.trace = 1, .discarded = {{"full", 1001}}, .lost = {}});
  EXPECT_EQ(later.Of("ns/t", 1).at(0).total.discarded, 1U);
}

TEST_F(ArchiveTest, NoNameLeadsOutOfTheFolder) {
  const auto refused = [this](const auto& change) {
    stream::Hello hello = who;
    stream::OpenTrace what = What();
    change(hello, what);
    return !archive.OpenTrace(hello, what).has_value();
  };
  EXPECT_TRUE(refused([](auto& hello, auto&) { hello.kubernetes_namespace = ".."; }));
  EXPECT_TRUE(refused([](auto& hello, auto&) { hello.trace = "a/b"; }));
  EXPECT_TRUE(refused([](auto& hello, auto&) { hello.trace_uid = ".."; }));
  EXPECT_TRUE(refused([](auto& hello, auto&) { hello.trace_uid = "pod-0"; }));
  EXPECT_TRUE(refused([](auto&, auto& what) { what.pod = ""; }));
  EXPECT_TRUE(refused([](auto&, auto& what) { what.container = std::string("a\0b", 3); }));
  EXPECT_TRUE(refused([](auto&, auto& what) { what.uuid = "../../x"; }));
  for (const char* path : {"", "/", "a/", "/a", "a//b", "a/../b", ".a"}) {
    EXPECT_TRUE(refused([path](auto&, auto& what) { what.path = path; })) << path;
  }
  const auto trace = archive.OpenTrace(who, What());
  stream::OpenStream stream = Stream();
  stream.channel = "../x";
  EXPECT_FALSE(archive.OpenStream(trace->key, stream));
}

TEST_F(ArchiveTest, APacketOfAnotherTraceOrWithAnotherNumberIsRefused) {
  const auto trace = archive.OpenTrace(who, What());
  const auto stream = archive.OpenStream(trace->key, Stream());
  EXPECT_FALSE(archive.OpenStream(trace->key, Stream())) << "opened twice";
  ctf::PacketWriter other({.trace_uuid = {9}});
  EXPECT_FALSE(archive.StorePacket(stream->handle, {.seq = 0}, other.Finish(0, 1)));
  ctf::PacketWriter own({.trace_uuid = uuid, .first_sequence = 1});
  EXPECT_FALSE(archive.StorePacket(stream->handle, {.seq = 0}, own.Finish(0, 1)));
  const std::vector<uint8_t> bytes(100, 1);
  EXPECT_FALSE(archive.StorePacket(stream->handle, {.seq = 0}, bytes));
  EXPECT_FALSE(archive.StorePacket(99, {.seq = 0}, bytes));
  EXPECT_EQ(File("user_3"), "");
}

}  // namespace
}  // namespace weft::ingest
