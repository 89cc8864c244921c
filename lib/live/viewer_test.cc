// SPDX-License-Identifier: Apache-2.0
#include "lib/live/viewer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lib/live/edit_packet.h"
#include "lib/live/limits.h"
#include "lib/live/testing/small_trace.h"

namespace weft::live {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "01 ff" as bytes.
std::string Hex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == ' ') continue;
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
    i++;
  }
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[4];
    std::snprintf(two, sizeof(two), "%02x ", static_cast<unsigned char>(c));
    text += two;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

// Reads big-endian numbers.
uint64_t Number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

std::string Big(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = size; i-- > 0;) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

struct Index {
  uint64_t offset, bits, content, begin, end, discarded, stream_class;
  uint32_t status, flags;
};

class ViewerTest : public ::testing::Test {
 protected:
  // Sends a command; returns the answer.
  std::string Ask(uint32_t command, const std::string& payload = "") {
    const std::string bytes = Big(payload.size(), 8) + Big(command, 4) + Big(0, 4) + payload;
    const Status status =
        viewer_.Receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    EXPECT_TRUE(status) << status.error().message;
    return std::exchange(viewer_.out(), "");
  }
  Status Refused(const std::string& hex) {
    const std::string bytes = Hex(hex);
    return viewer_.Receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
  void Connect() {
    Ask(1, Big(0, 8) + Big(2, 4) + Big(4, 4) + Big(1, 4));
    Ask(8);
  }
  // The ids of the streams that are announced.
  std::vector<uint64_t> Streams(std::string_view answer) {
    EXPECT_EQ(Number(answer, 0, 4), 1U);
    std::vector<uint64_t> ids;
    const uint64_t count = Number(answer, 4, 4);
    EXPECT_EQ(answer.size(), 8 + count * 4371);
    for (size_t i = 0; i < count; i++) ids.push_back(Number(answer, 8 + i * 4371, 8));
    return ids;
  }
  std::vector<uint64_t> Attach() { return Streams(Ask(3, Big(1, 8) + Big(0, 8) + Big(2, 4))); }
  Index Next(uint64_t stream) {
    const std::string a = Ask(4, Big(stream, 8));
    EXPECT_EQ(a.size(), 64U);
    return {Number(a, 0, 8),
            Number(a, 8, 8),
            Number(a, 16, 8),
            Number(a, 24, 8),
            Number(a, 32, 8),
            Number(a, 40, 8),
            Number(a, 48, 8),
            static_cast<uint32_t>(Number(a, 56, 4)),
            static_cast<uint32_t>(Number(a, 60, 4))};
  }
  std::string Get(uint64_t stream, const Index& index) {
    const std::string a = Ask(5, Big(stream, 8) + Big(index.offset, 8) + Big(index.bits / 8, 4));
    EXPECT_EQ(Number(a, 0, 4), 1U);
    return a.substr(12);
  }
  static ctf::PacketInfo Info(const std::string& packet) {
    return ctf::ReadPacketInfo({reinterpret_cast<const uint8_t*>(packet.data()), packet.size()})
        .value();
  }
  std::string MetadataOf(uint64_t stream) {
    const std::string a = Ask(6, Big(stream, 8));
    return Number(a, 8, 4) == 1 ? a.substr(12) : "";
  }

  testing::SmallTrace small_;
  Viewer viewer_{small_.trace, small_, 9};
};

// The bytes of docs/formats/live.md.
TEST_F(ViewerTest, AnswersWithTheDocumentedBytes) {
  small_.AddStream({1000}, 1000);
  EXPECT_EQ(ToHex(Ask(1, Hex("00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 04 00 00 00 01"))),
            "00 00 00 00 00 00 00 09 00 00 00 02 00 00 00 04 00 00 00 01");
  EXPECT_EQ(ToHex(Ask(8)), "00 00 00 01");
  const std::string list = Ask(2);
  EXPECT_EQ(ToHex(list.substr(0, 32)),
            "00 00 00 01 00 00 00 00 00 00 00 01 00 01 86 a0 00 00 00 00 00 00 00 01 73 68 6f 70 "
            "00 00 00 00");
  EXPECT_EQ(list.size(), 4U + 20 + 64 + 255);
  EXPECT_EQ(list.substr(24 + 64, 6), std::string("sales\0", 6));
  EXPECT_THAT(Attach(), ElementsAre(2, 3));
  const std::string metadata = MetadataOf(2);
  EXPECT_EQ(ToHex(metadata.substr(0, 24)),
            "57 1d d1 75 01 02 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(ToHex(metadata.substr(32, 5)), "00 00 00 01 08");
  EXPECT_THAT(metadata.substr(37), ::testing::StartsWith("/* CTF 1.8 */"));
  EXPECT_EQ(ToHex(Ask(6, Big(2, 8))), "00 00 00 00 00 00 00 00 00 00 00 02");
  EXPECT_EQ(ToHex(Ask(4, Big(3, 8))),
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 c0 00 00 00 00 00 00 02 c0 00 00 00 00 "
            "00 00 03 e8 00 00 00 00 00 00 03 e8 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 05 "
            "00 00 00 01 00 00 00 00");
  EXPECT_EQ(ToHex(Ask(5, Big(3, 8) + Big(0, 8) + Big(4, 4))),
            "00 00 00 01 00 00 00 04 00 00 00 00 c1 1f fc c1");
  small_.trace.streams[0].safe_ns = 0x1fff;
  EXPECT_EQ(ToHex(Ask(4, Big(3, 8)).substr(32)),
            "00 00 00 00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 05 00 00 00 05 "
            "00 00 00 00");
  EXPECT_EQ(ToHex(Ask(7, Big(1, 8))), "00 00 00 02 00 00 00 00");
  EXPECT_EQ(ToHex(Ask(9, Big(1, 8))), "00 00 00 01");
}

TEST_F(ViewerTest, GivesEachPacketOnceAndThenBeacons) {
  small_.AddStream({1000, 1010}, 1500);
  small_.AddPacket(0, {1600});
  Connect();
  Attach();
  const Index first = Next(3);
  EXPECT_EQ(first.status, 1U);
  EXPECT_EQ(first.flags, 1U) << "metadata comes before the packet";
  MetadataOf(2);
  EXPECT_EQ(Info(Get(3, first)).sequence, 0U);
  const Index second = Next(3);
  EXPECT_EQ(second.flags, 0U);
  EXPECT_EQ(second.offset, first.bits / 8);
  EXPECT_EQ(Info(Get(3, second)).begin, 1600U);
  EXPECT_EQ(Next(3).status, 2U) << "nothing new";
  small_.trace.streams[0].safe_ns = 1550;
  EXPECT_EQ(Next(3).status, 2U) << "the packet said more";
  small_.trace.streams[0].safe_ns = 10'000;
  const Index beacon = Next(3);
  EXPECT_EQ(beacon.status, 5U);
  EXPECT_EQ(beacon.end, 8192U);
  EXPECT_EQ(beacon.stream_class, 5U);
  EXPECT_EQ(Next(3).status, 2U) << "each once";
  small_.trace.streams[0].has_ended = true;
  EXPECT_EQ(Next(3).status, 3U);
  EXPECT_EQ(Number(Ask(7, Big(1, 8)), 0, 4), 2U) << "there may be others";
  small_.trace.is_over = true;
  EXPECT_EQ(Number(Ask(7, Big(1, 8)), 0, 4), 4U);
  EXPECT_EQ(Number(Ask(2), 0, 4), 0U) << "a viewer that looks again finds no session";
}

TEST_F(ViewerTest, CallsAnIdleStreamsAttentionToNewOnes) {
  small_.AddStream({1000}, 1500);
  Connect();
  Attach();
  MetadataOf(2);
  Next(3);
  small_.AddStream({1600});
  // No packet comes, and only a packet tells babeltrace2 2.0 of new streams.
  const Index inserted = Next(3);
  EXPECT_EQ(inserted.status, 1U);
  EXPECT_EQ(inserted.flags, 2U);
  const ctf::PacketInfo info = Info(Get(3, inserted));
  EXPECT_EQ(info.content_bytes, ctf::kPacketHeaderBytes);
  EXPECT_EQ(std::make_tuple(info.sequence, info.begin, info.end, info.instance_id),
            std::make_tuple(1U, 1500U, 1500U, 0U));
  EXPECT_EQ(Next(3).status, 2U) << "once";
  EXPECT_THAT(Streams(Ask(7, Big(1, 8))), ElementsAre(5));
  // The stream's own packets follow without a gap.
  small_.AddPacket(0, {1700});
  EXPECT_EQ(Info(Get(3, Next(3))).sequence, 2U);
}

TEST_F(ViewerTest, NothingIsOlderThanWhatWasShown) {
  small_.AddStream({1000, 5000});
  Connect();
  Attach();
  MetadataOf(2);
  Next(3);
  // Its first events are older than what the viewer may have shown.
  small_.AddStream({3000, 4000, 5100, 5105});
  Next(3);
  EXPECT_THAT(Streams(Ask(7, Big(1, 8))), ElementsAre(5));
  const Index index = Next(5);
  EXPECT_EQ(index.begin, 5000U);
  EXPECT_EQ(index.end, 5105U);
  const std::string packet = Get(5, index);
  EXPECT_EQ(Info(packet).begin, 5000U);
  EXPECT_EQ(Info(packet).content_bytes, packet.size());
  EXPECT_EQ(viewer_.raised(), 2U);
  // Raising it once more tells the times that it has now.
  const auto again = RaiseTimes(packet, small_.trace.traces[0].metadata, 5105);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->events, 3U);
  EXPECT_EQ(RaiseTimes(packet, small_.trace.traces[0].metadata, 5000)->events, 0U);
}

TEST_F(ViewerTest, LeavesOutWhatCannotBeDecoded) {
  small_.AddStream({5000});
  Connect();
  Attach();
  Next(3);
  small_.AddStream({3000});
  small_.trace.streams[1].packets[0].bytes -= 1;  // cut off
  Next(3);
  Ask(7, Big(1, 8));
  const Index index = Next(5);
  EXPECT_EQ(Info(Get(5, index)).content_bytes, ctf::kPacketHeaderBytes);
  EXPECT_EQ(viewer_.left_out(), 1U);
}

TEST_F(ViewerTest, AnswersCommandsThatCameInPieces) {
  const std::string bytes = Hex(
      "00 00 00 00 00 00 00 14 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 00 00 "
      "00 0f 00 00 00 01");
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    ASSERT_TRUE(viewer_.Receive({&byte, 1}));
  }
  EXPECT_EQ(Number(viewer_.out(), 12, 4), 14U) << "a newer viewer gets the version that this has";
}

TEST_F(ViewerTest, WaitsUntilItsAnswersAreTaken) {
  Connect();
  std::string bytes;
  for (int i = 0; i < 10'000; i++) bytes += Big(0, 8) + Big(2, 4) + Big(0, 4);
  ASSERT_TRUE(viewer_.Receive({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  EXPECT_LT(viewer_.out().size(), kMaxOutBytes + 1000);
  size_t all = 0;
  while (!viewer_.out().empty()) {
    all += std::exchange(viewer_.out(), "").size();
    ASSERT_TRUE(viewer_.Receive({}));
  }
  EXPECT_EQ(all, 10'000U * (4 + 20 + 64 + 255));
}

TEST_F(ViewerTest, RefusesWhatIsNotTheProtocol) {
  const auto why = [this](const std::string& hex) {
    viewer_.~Viewer();
    new (&viewer_) Viewer(small_.trace, small_, 1);
    const Status status = Refused(hex);
    return status ? "" : status.error().message;
  };
  EXPECT_THAT(why("47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a"), HasSubstr("a command of"));
  EXPECT_THAT(why("00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 00"), HasSubstr("before CONNECT"));
  EXPECT_THAT(why("00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00"), HasSubstr("too short"));
  const std::string connect =
      "00 00 00 00 00 00 00 14 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 00 00 "
      "00 04 00 00 00 01 ";
  EXPECT_THAT(why(connect + "00 00 00 00 00 00 00 00 00 00 00 63 00 00 00 00"),
              HasSubstr("unknown command 99"));
  for (const char* id : {"00", "01", "02", "03", "ff"}) {
    EXPECT_THAT(why(connect +
                    "00 00 00 00 00 00 00 08 00 00 00 04 00 00 00 00 00 00 00 00 00 00 "
                    "00 " +
                    id),
                HasSubstr("unknown stream"));
  }
}

}  // namespace
}  // namespace weft::live
