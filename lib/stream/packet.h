// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes packets on a data connection (lib/abi/stream.h). Pure functions, and
// PacketReader, which one thread owns.
#ifndef WEFT_LIB_STREAM_PACKET_H_
#define WEFT_LIB_STREAM_PACKET_H_

#include <array>
#include <cstdint>
#include <span>

#include "lib/abi/stream.h"
#include "lib/base/bytes.h"
#include "lib/base/page_buffer.h"
#include "lib/base/result.h"

namespace weft::stream {

using HelloBytes = std::array<uint8_t, sizeof(weft_stream_hello)>;
using HeaderBytes = std::array<uint8_t, sizeof(weft_stream_packet)>;

HelloBytes EncodeHello(uint64_t session);
// Returns the session. kCorrupt: it is not a hello; kUnsupported: it has another version.
Result<weft_stream_hello> DecodeHello(const HelloBytes& bytes);

// Encodes a header with the length and checksum of `packet`.
HeaderBytes EncodeHeader(weft_stream_packet header, Bytes packet);
// kCorrupt: a length that no packet has, or reserved bytes that are not zero.
Result<weft_stream_packet> DecodeHeader(const HeaderBytes& bytes);
// kCorrupt: the packet is not what its sender made.
Status CheckPacket(const weft_stream_packet& header, Bytes packet);

// Takes packets out of the bytes behind a hello. The caller reads into Room() and says how much
// that was; packet() is there until the next Received.
class PacketReader {
 public:
  // `header_size`: the hello's.
  explicit PacketReader(size_t header_size) : header_size_(header_size) {}

  // Returns where the next bytes go: never empty, and never beyond the packet.
  [[nodiscard]] std::span<uint8_t> Room();
  // Returns true if a packet is complete and its checksum is right. After an error, do not call it
  // again.
  Result<bool> Received(size_t bytes);

  [[nodiscard]] const weft_stream_packet& header() const { return header_; }
  // Returns the packet, which begins at a page.
  [[nodiscard]] Bytes packet() const { return Bytes(buffer_.span()).first(header_.length); }

 private:
  size_t header_size_;
  size_t at_ = 0;  // bytes of header and packet that are there
  std::array<uint8_t, 256> front_{};
  weft_stream_packet header_{};
  PageBuffer buffer_;
};

}  // namespace weft::stream

#endif  // WEFT_LIB_STREAM_PACKET_H_
