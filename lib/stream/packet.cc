// SPDX-License-Identifier: Apache-2.0
// See packet.h.
#include "lib/stream/packet.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "lib/stream/crc32c.h"

namespace weft::stream {
namespace {

// A later minor version may have a header of at most this size.
constexpr size_t kMaxHeaderBytes = 256;
// A new buffer for every packet would cost more than the packet; most packets are about as long as
// the one before.
constexpr size_t kMinBuffer = size_t{64} * 1024;

uint32_t Checksum(weft_stream_packet header, Bytes packet) {
  header.crc32c = 0;
  HeaderBytes bytes;
  std::memcpy(bytes.data(), &header, sizeof(header));
  return Crc32c(packet, Crc32c(bytes));
}

}  // namespace

HelloBytes EncodeHello(uint64_t session) {
  const weft_stream_hello hello{.magic = WEFT_STREAM_MAGIC,
                                .version = WEFT_STREAM_VERSION,
                                .header_size = sizeof(weft_stream_packet),
                                .session = session};
  HelloBytes bytes;
  std::memcpy(bytes.data(), &hello, sizeof(hello));
  return bytes;
}

Result<weft_stream_hello> DecodeHello(const HelloBytes& bytes) {
  weft_stream_hello hello{};
  std::memcpy(&hello, bytes.data(), sizeof(hello));
  if (hello.magic != WEFT_STREAM_MAGIC) {
    return Fail(ErrorCode::kCorrupt, "data connection: wrong magic number");
  }
  if (hello.version != WEFT_STREAM_VERSION) {
    return Fail(ErrorCode::kUnsupported, "data connection: of another version");
  }
  if (hello.header_size < sizeof(weft_stream_packet) || hello.header_size > kMaxHeaderBytes) {
    return Fail(ErrorCode::kCorrupt, "data connection: a header's size");
  }
  return hello;
}

HeaderBytes EncodeHeader(weft_stream_packet header, Bytes packet) {
  header.length = static_cast<uint32_t>(packet.size());
  header.reserved = 0;
  header.crc32c = Checksum(header, packet);
  HeaderBytes bytes;
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

Result<weft_stream_packet> DecodeHeader(const HeaderBytes& bytes) {
  weft_stream_packet header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.length == 0 || header.length > WEFT_STREAM_MAX_PACKET_BYTES) {
    return Fail(ErrorCode::kCorrupt, "packet: a length that no packet has");
  }
  if (header.reserved != 0) return Fail(ErrorCode::kCorrupt, "packet: reserved bytes");
  return header;
}

Status CheckPacket(const weft_stream_packet& header, Bytes packet) {
  if (packet.size() == header.length && Checksum(header, packet) == header.crc32c) return {};
  return Fail(ErrorCode::kCorrupt, "packet: wrong checksum");
}

std::span<uint8_t> PacketReader::Room() {
  const size_t packet_bytes = header_.length;
  // The caller took the packet before.
  if (at_ == header_size_ + packet_bytes && at_ > header_size_) {
    at_ = 0;
    header_.length = 0;
  }
  if (at_ < header_size_) return std::span(front_).subspan(at_, header_size_ - at_);
  return buffer_.span().subspan(at_ - header_size_, header_size_ + packet_bytes - at_);
}

Result<bool> PacketReader::Received(size_t bytes) {
  at_ += bytes;
  if (at_ < header_size_) return false;
  if (at_ == header_size_) {
    HeaderBytes front;
    std::copy_n(front_.begin(), front.size(), front.begin());
    WEFT_ASSIGN(header_, DecodeHeader(front));
    if (buffer_.span().size() < header_.length) {
      buffer_ = PageBuffer(std::max<size_t>(header_.length, kMinBuffer));
    }
    return false;
  }
  if (at_ < header_size_ + header_.length) return false;
  WEFT_TRY(CheckPacket(header_, packet()));
  return true;
}

}  // namespace weft::stream
