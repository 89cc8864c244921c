// SPDX-License-Identifier: Apache-2.0
// The bytes of a data connection, against a second encoder that writes them one by one.
#include "lib/stream/packet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "lib/stream/crc32c.h"

namespace weft::stream {
namespace {

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Computes the CRC bit by bit, as the polynomial is defined.
uint32_t SlowCrc(Bytes bytes) {
  uint32_t crc = ~0U;
  for (const uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; bit++) {
      const bool one = ((crc ^ byte >> bit) & 1) != 0;
      crc = crc >> 1 ^ (one ? 0x82f63b78U : 0);
    }
  }
  return ~crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c({}), 0U);
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0)), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0xff)), 0x62a8ab43U);
}

TEST(Crc32c, AllWaysToComputeItAgree) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; i++) {
    // The processor's instruction is used in another way for more than 6 KiB.
    std::vector<uint8_t> bytes(random() % (i % 25 == 0 ? 20'000 : 100));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const uint32_t expected = SlowCrc(bytes);
    EXPECT_EQ(Crc32c(bytes), expected);
    EXPECT_EQ(Crc32cPortable(bytes), expected);
    const size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    EXPECT_EQ(Crc32c(Bytes(bytes).subspan(cut), Crc32c(Bytes(bytes).first(cut))), expected);
  }
}

// The bytes of the example in docs/formats/stream.md.
const uint8_t kHello[] = {0x57, 0x54, 0x53, 0x54, 2,    0,    0x30, 0,
                          0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
const uint8_t kPacket[] = {7,   0,   0,  0, 0, 0, 0, 0,  // stream_handle
                           2,   0,   0,  0, 0, 0, 0, 0,  // seq
                           1,   0,   0,  0, 0, 0, 0, 0,  // prev_seq
                           0,   0,   0,  0, 0, 0, 0, 0,  // circuit_id
                           3,   0,   0,  0,              // length
                           0,   0,   0,  0,              // crc32c, below
                           9,   0,   0,  0,              // events
                           0,   0,   0,  0,              // reserved
                           'a', 'b', 'c'};
constexpr uint32_t kPacketCrc = 0xde9a5433;

TEST(Packet, GoldenBytes) {
  const HelloBytes hello = EncodeHello(0x1122334455667788);
  EXPECT_EQ(std::memcmp(hello.data(), kHello, sizeof(kHello)), 0);
  EXPECT_EQ(SlowCrc(kPacket), kPacketCrc);
  std::vector<uint8_t> expected(std::begin(kPacket), std::end(kPacket));
  for (int i = 0; i < 4; i++) expected[36 + i] = static_cast<uint8_t>(kPacketCrc >> (8 * i));
  const HeaderBytes header =
      EncodeHeader({.stream_handle = 7, .seq = 2, .prev_seq = 1, .events = 9}, AsBytes("abc"));
  EXPECT_EQ(std::memcmp(header.data(), expected.data(), header.size()), 0);
}

TEST(Packet, RefusesAHelloWithAnotherMagicOrVersion) {
  HelloBytes good;
  std::memcpy(good.data(), kHello, sizeof(kHello));
  ASSERT_TRUE(DecodeHello(good));
  EXPECT_EQ(DecodeHello(good)->session, 0x1122334455667788U);
  for (const size_t at : {size_t{0}, size_t{4}, size_t{7}}) {
    HelloBytes bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(DecodeHello(bad)) << at;
  }
}

// Feeds a reader with bytes that come in pieces of every size.
TEST(PacketReader, TakesPacketsOutOfAnyPieces) {
  std::string wire;
  for (int i = 0; i < 3; i++) {
    const std::string packet(static_cast<size_t>(1 + 40 * i), static_cast<char>('a' + i));
    const HeaderBytes header =
        EncodeHeader({.stream_handle = 1, .seq = static_cast<uint64_t>(i)}, AsBytes(packet));
    wire.append(header.begin(), header.end());
    wire += packet;
  }
  for (size_t piece = 1; piece <= wire.size(); piece++) {
    PacketReader reader(sizeof(weft_stream_packet));
    std::string got;
    for (size_t at = 0; at < wire.size();) {
      const auto room = reader.Room();
      const size_t n = std::min({room.size(), piece, wire.size() - at});
      ASSERT_GT(n, 0U);
      std::memcpy(room.data(), wire.data() + at, n);
      at += n;
      const auto complete = reader.Received(n);
      ASSERT_TRUE(complete) << complete.error().message;
      if (*complete) got.append(reader.packet().begin(), reader.packet().end());
    }
    ASSERT_EQ(got, "a" + std::string(41, 'b') + std::string(81, 'c'));
  }
}

TEST(PacketReader, RefusesEveryChangedByte) {
  const HeaderBytes header = EncodeHeader({.stream_handle = 1, .seq = 2}, AsBytes("packet"));
  std::string good(header.begin(), header.end());
  good += "packet";
  for (size_t at = 0; at < good.size(); at++) {
    std::string bad = good;
    bad[at] ^= 1;
    bad += std::string(2, '\0');  // a length that grew by one finds its byte
    PacketReader reader(sizeof(weft_stream_packet));
    bool refused = false;
    bool complete = false;
    for (size_t done = 0; done < bad.size() && !refused && !complete;) {
      const auto room = reader.Room();
      const size_t n = std::min(room.size(), bad.size() - done);
      std::memcpy(room.data(), bad.data() + done, n);
      done += n;
      const auto received = reader.Received(n);
      refused = !received;
      complete = received && *received;
    }
    EXPECT_FALSE(complete) << "byte " << at;
  }
}

}  // namespace
}  // namespace weft::stream
