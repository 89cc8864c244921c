// SPDX-License-Identifier: Apache-2.0
// Sender and Receiver, message by message: what each refuses, and what the simulation does not
// reach.
#include <gtest/gtest.h>

#include "lib/stream/limits.h"
#include "lib/stream/sender.h"
#include "lib/stream/testing/memory_archive.h"

namespace weft::stream {
namespace {

using testing::MemoryArchive;

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Wire(const Message& message) {
  std::string out;
  EXPECT_TRUE(Append(message, out));
  return out;
}

template <typename T>
T Last(std::string_view bytes) {
  MessageReader reader;
  reader.Push(AsBytes(bytes));
  T last{};
  for (auto m = reader.Next(); m && *m; m = reader.Next()) {
    if (auto* found = std::get_if<T>(&**m)) last = *found;
  }
  return last;
}

class ProtocolTest : public ::testing::Test {
 protected:
  // Passes control messages both ways until neither side has any.
  Status Talk() {
    while (!sender.control_out().empty() || !receiver.control_out().empty()) {
      const std::string to_relay = std::exchange(sender.control_out(), "");
      WEFT_TRY(receiver.ReceiveControl(AsBytes(to_relay)));
      receiver.Flush();
      const std::string to_node = std::exchange(receiver.control_out(), "");
      WEFT_TRY(sender.ReceiveControl(AsBytes(to_node)));
    }
    return {};
  }
  // Passes one packet of the data connection; returns false if there is none.
  bool Pass() {
    const Sender::Out out = sender.NextData();
    if (out.packet.empty()) return false;
    HeaderBytes front;
    std::copy(out.front.begin(), out.front.end(), front.begin());
    EXPECT_TRUE(receiver.ReceivePacket(*DecodeHeader(front), out.packet));
    receiver.Flush();
    sender.DataSent(out.front.size() + out.packet.size());
    return true;
  }
  void Start() {
    sender.Connected();
    ASSERT_TRUE(Talk());
    ASSERT_TRUE(sender.wants_data());
    sender.DataConnected();
    sender.DataSent(sender.NextData().front.size());
  }

  MemoryArchive archive;
  Sender sender{Hello{
      .node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""}};
  Receiver receiver{archive, 7, Receiver::Data::kInOrder};
  const TraceName name{.pod = "p", .pod_uid = "", .container = "c", .uuid = "id", .path = "ust"};
  const std::vector<uint8_t> bytes = std::vector<uint8_t>(100, 1);
};

TEST_F(ProtocolTest, NoPacketIsSentBeforeItsMetadataIsStored) {
  const uint32_t trace = sender.AddTrace(name, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 0, 0);
  Start();
  sender.WriteMetadata(trace, 0, "event\n\n");
  sender.Put(stream, 5, bytes);
  EXPECT_FALSE(Pass());
  EXPECT_FALSE(sender.all_stored(trace));
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(Pass());
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(sender.all_stored(trace));
  EXPECT_EQ(archive.traces["id"].metadata, "event\n\n");
  EXPECT_EQ((archive.traces["id"].streams[{"user", 0}].size()), 1U);
}

TEST_F(ProtocolTest, MetadataMayBeReplacedInPlace) {
  const uint32_t trace = sender.AddTrace(name, 0);
  sender.WriteMetadata(trace, 0, "range 0\n\n");
  sender.WriteMetadata(trace, 6, "5");
  Start();
  EXPECT_EQ(archive.traces["id"].metadata, "range 5\n\n");
  EXPECT_TRUE(sender.all_stored(trace));
}

TEST_F(ProtocolTest, ATraceEndsWhenAllOfItIsStored) {
  const uint32_t trace = sender.AddTrace(name, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 0, 0);
  Start();
  sender.Put(stream, 5, bytes);
  sender.EndTrace(trace);
  ASSERT_TRUE(Talk());
  EXPECT_FALSE(sender.ended(trace));
  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(sender.ended(trace));
  EXPECT_EQ(archive.traces["id"].ended, 1U);
}

TEST_F(ProtocolTest, AnnouncesPacketsLostWhichTheRelayLostAfterAcknowledgement) {
  const uint32_t trace = sender.AddTrace(name, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 4, 40);
  Start();
  EXPECT_EQ(archive.lost, 4U);
  sender.Put(stream, 5, bytes);
  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(sender.all_stored(trace));
  EXPECT_EQ((archive.traces["id"].streams[{"user", 0}].front().seq), 4U);
}

TEST_F(ProtocolTest, APacketThatIsAcknowledgedWhileItIsSentAgainKeepsItsBytes) {
  const uint32_t trace = sender.AddTrace(name, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 0, 0);
  Start();
  auto own = std::make_unique<std::vector<uint8_t>>(100, 1);
  sender.Put(stream, 5, *own);
  const uint64_t handle = 2;  // the archive's second key
  ASSERT_TRUE(Pass());
  ASSERT_TRUE(sender.ReceiveControl(AsBytes(Wire(Gap{.handle = handle, .first = 0, .last = 0}))));
  Sender::Out out = sender.NextData();
  sender.DataSent(out.front.size() + 50);
  ASSERT_TRUE(sender.ReceiveControl(AsBytes(Wire(Stored{.handle = handle, .seq = 0}))));
  EXPECT_TRUE(sender.all_stored(trace));
  own.reset();
  out = sender.NextData();
  ASSERT_EQ(out.packet.size(), 50U);
  EXPECT_EQ(std::vector<uint8_t>(out.packet.begin(), out.packet.end()),
            std::vector<uint8_t>(50, 1));
}

TEST_F(ProtocolTest, LossesAreTotalsAndAreSaidAgain) {
  const uint32_t trace = sender.AddTrace(name, 0);
  Start();
  sender.Report({.trace = trace, .discarded = {{"full", 3}}, .lost = {{"store/write", 1}}});
  ASSERT_TRUE(Talk());
  EXPECT_EQ(archive.traces["id"].losses.discarded.at("full"), 3U);
  archive.traces["id"].losses = {};
  sender.Connected();
  receiver = Receiver(archive, 8, Receiver::Data::kInOrder);
  ASSERT_TRUE(Talk());
  EXPECT_EQ(archive.traces["id"].losses.lost.at("store/write"), 1U);
}

TEST_F(ProtocolTest, TheNodeRefusesARelayThatContradictsItself) {
  const uint32_t trace = sender.AddTrace(name, 10);
  sender.AddStream(trace, "user", 0, 3, 0);
  const auto refused = [this](const Message& message) {
    sender.Connected();
    (void)sender.ReceiveControl(
        AsBytes(Wire(Chosen{.version = WEFT_STREAM_VERSION}) + Wire(Welcome{.session = 1})));
    return !sender.ReceiveControl(AsBytes(Wire(message))).has_value();
  };
  EXPECT_TRUE(refused(Chosen{.version = WEFT_STREAM_VERSION}));
  EXPECT_TRUE(refused(Welcome{.session = 1}));
  EXPECT_TRUE(refused(TraceOpened{.trace = trace, .metadata = 11}));
  EXPECT_TRUE(refused(TraceOpened{.trace = trace, .metadata = 9}));
  EXPECT_TRUE(refused(MetadataStored{.trace = trace, .offset = 0, .bytes = 1}));
  EXPECT_TRUE(refused(StreamOpened{.stream = 1, .handle = 1, .next = 3}));
  EXPECT_TRUE(refused(Hello{}));
  EXPECT_TRUE(refused(Refusal{.reason = "no", .versions = {}}));
  EXPECT_FALSE(refused(TraceOpened{.trace = trace, .metadata = 10}));
}

TEST_F(ProtocolTest, TheRelayRefusesANodeThatContradictsItself) {
  const auto refused = [this](const std::vector<Message>& messages) {
    Receiver fresh(archive, 1, Receiver::Data::kInOrder);
    for (const Message& message : messages) {
      if (!fresh.ReceiveControl(AsBytes(Wire(message)))) return true;
    }
    return false;
  };
  const Offer offer{.versions = {WEFT_STREAM_VERSION, 9}};
  const Hello hello{
      .node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "", .ticket = ""};
  const OpenTrace open{.trace = 1,
                       .pod = "p",
                       .pod_uid = "",
                       .container = "c",
                       .uuid = "x",
                       .path = "ust",
                       .metadata = 0};
  EXPECT_TRUE(refused({Offer{.versions = {1, 9}}}));
  EXPECT_TRUE(refused({Offer{.versions = {}}}));
  EXPECT_TRUE(refused({hello}));
  EXPECT_TRUE(refused({offer, offer}));
  EXPECT_TRUE(refused({offer, Hello{}}));
  EXPECT_TRUE(refused({offer, hello, open, open}));
  EXPECT_TRUE(refused({offer, hello, Metadata{.trace = 1, .offset = 0, .text = "x"}}));
  EXPECT_TRUE(refused({offer, hello, open, Metadata{.trace = 1, .offset = 1, .text = "x"}}));
  EXPECT_TRUE(refused({offer, hello, OpenStream{.trace = 1}}));
  EXPECT_TRUE(refused({offer, hello, EndTrace{.trace = 1}}));
  EXPECT_TRUE(refused({offer, hello, Welcome{}}));
  EXPECT_FALSE(refused({offer, hello, open, Metadata{.trace = 1, .offset = 0, .text = "x"}}));
  weft_stream_packet header{.stream_handle = 99, .prev_seq = WEFT_STREAM_NO_SEQ};
  EXPECT_FALSE(
      Receiver(archive, 1, Receiver::Data::kInOrder).ReceivePacket(header, bytes).has_value());
}

TEST_F(ProtocolTest, ARelayTellsWhichSideIsOlder) {
  const auto refusal = [this](uint32_t offered) {
    Receiver fresh(archive, 1, Receiver::Data::kInOrder);
    const Status received = fresh.ReceiveControl(AsBytes(Wire(Offer{.versions = {offered}})));
    fresh.Refuse(received.error());
    return Last<Refusal>(fresh.control_out());
  };
  EXPECT_NE(refusal(1).reason.find("the node is older than the relay"), std::string::npos);
  EXPECT_NE(refusal(9).reason.find("the relay is older than the node"), std::string::npos);
  EXPECT_EQ(refusal(9).versions, std::vector<uint32_t>{WEFT_STREAM_VERSION});
}

TEST_F(ProtocolTest, ANodeTellsWhichSideIsOlder) {
  const auto error = [this](std::vector<uint32_t> versions) {
    sender.Connected();
    const Refusal refusal{.reason = "no", .versions = std::move(versions)};
    return sender.ReceiveControl(AsBytes(Wire(refusal))).error();
  };
  // Relays of the first version name no versions.
  EXPECT_EQ(error({}).code, ErrorCode::kUnsupported);
  EXPECT_NE(error({}).message.find("the relay is older than the node"), std::string::npos);
  EXPECT_NE(error({9}).message.find("the node is older than the relay"), std::string::npos);
  EXPECT_EQ(error({WEFT_STREAM_VERSION}).message, "relay: no");
}

TEST_F(ProtocolTest, OneBeaconIsForAllTraces) {
  std::vector<uint32_t> traces;
  const std::vector<std::string> uuids = {"a", "b", "c"};
  for (const std::string& uuid : uuids) {
    TraceName other = name;
    other.uuid = uuid;
    traces.push_back(sender.AddTrace(other, 0));
    sender.AddStream(traces.back(), "user", 0, 0, 0);
  }
  Start();
  const auto promises = [&] {
    std::vector<uint64_t> all;
    for (const std::string& uuid : uuids) all.push_back(archive.traces[uuid].promise);
    return all;
  };
  const auto beacon = [&](uint64_t a, uint64_t b, uint64_t c) {
    const std::vector<uint64_t> times = {a, b, c};
    for (size_t i = 0; i < times.size(); i++) sender.Promise(traces[i], times[i]);
    sender.SendBeacons();
    const auto sent = Last<Beacon>(sender.control_out());
    EXPECT_TRUE(Talk());
    return sent;
  };
  const uint64_t old = 1000;
  const uint64_t now = old + 2 * kMaxPromiseSpread;
  // One that is far behind the others has a time of its own, until it has caught up.
  EXPECT_EQ(beacon(now + 1, now, old).traces.size(), 1U);
  EXPECT_EQ(promises(), (std::vector<uint64_t>{now, now, old}));
  EXPECT_TRUE(beacon(now + 2, now + 3, now + 4).traces.empty());
  EXPECT_EQ(promises(), (std::vector<uint64_t>{now + 2, now + 2, now + 2}));
  // A trace whose new stream the relay has not opened has no part in it.
  sender.AddStream(traces[1], "user", 1, 0, 0);
  EXPECT_EQ(beacon(now + 5, now + 5, now + 5).traces.size(), 1U);
  EXPECT_EQ(promises(), (std::vector<uint64_t>{now + 5, now + 2, now + 5}));
  EXPECT_TRUE(beacon(now + 6, now + 6, now + 6).traces.empty());
  EXPECT_EQ(promises(), (std::vector<uint64_t>{now + 6, now + 6, now + 6}));
}

TEST_F(ProtocolTest, ASessionThatAnotherOneTookOverFromCanStoreNothing) {
  const uint32_t trace = sender.AddTrace(name, 0);
  const uint32_t stream = sender.AddStream(trace, "user", 0, 0, 0);
  Start();
  sender.Put(stream, 5, bytes);
  const Sender::Out out = sender.NextData();
  HeaderBytes front;
  std::copy(out.front.begin(), out.front.end(), front.begin());
  Receiver next(archive, 8, Receiver::Data::kInOrder);
  sender.Connected();
  std::swap(next, receiver);
  ASSERT_TRUE(Talk());
  EXPECT_FALSE(next.ReceivePacket(*DecodeHeader(front), bytes).has_value());
}

TEST_F(ProtocolTest, PacketsBehindAGapAreBounded) {
  const uint32_t trace = sender.AddTrace(name, 0);
  sender.AddStream(trace, "user", 0, 0, 0);
  Start();
  weft_stream_packet header{.stream_handle = 2, .length = 100};
  for (uint64_t seq = 1; seq < 2 * kMaxHeldPackets; seq++) {
    header.seq = seq;
    header.prev_seq = seq - 1;
    ASSERT_TRUE(receiver.ReceivePacket(header, bytes));
  }
  EXPECT_EQ(Last<Gap>(receiver.control_out()).last, 2 * kMaxHeldPackets - 2);
  header.seq = 0;
  header.prev_seq = WEFT_STREAM_NO_SEQ;
  ASSERT_TRUE(receiver.ReceivePacket(header, bytes));
  EXPECT_EQ((archive.traces["id"].streams[{"user", 0}].size()), kMaxHeldPackets + 1);
}

TEST_F(ProtocolTest, AClosedDoorWaitsForADecision) {
  Receiver closed{archive, 8, Receiver::Data::kInOrder, Receiver::Door::kClosed};
  std::swap(closed, receiver);
  sender.SetTicket("x");
  sender.AddTrace(name, 0);
  sender.Connected();
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(receiver.awaits_decision());
  EXPECT_EQ(receiver.hello().ticket, "x");
  EXPECT_FALSE(receiver.welcomed() || sender.wants_data());
  ASSERT_TRUE(receiver.Welcome());
  EXPECT_FALSE(receiver.awaits_decision());
  ASSERT_TRUE(Talk());
  EXPECT_TRUE(sender.wants_data() && archive.traces.contains("id"));
}

TEST_F(ProtocolTest, NothingIsTakenBeforeTheDecision) {
  Receiver closed{archive, 8, Receiver::Data::kInOrder, Receiver::Door::kClosed};
  std::swap(closed, receiver);
  sender.Connected();
  ASSERT_TRUE(Talk());
  const std::string early = Wire(OpenTrace{.trace = 1,
                                           .pod = "p",
                                           .pod_uid = "",
                                           .container = "c",
                                           .uuid = "id",
                                           .path = "ust",
                                           .metadata = 0});
  EXPECT_FALSE(receiver.ReceiveControl(AsBytes(early)));
  EXPECT_TRUE(archive.traces.empty());
}

}  // namespace
}  // namespace weft::stream
