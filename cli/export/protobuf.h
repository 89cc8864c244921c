// SPDX-License-Identifier: Apache-2.0
// Writes messages of Protocol Buffers, field by field, as their encoding is documented
// (protobuf.dev, "Encoding"). Thread-safety: none.
#ifndef WEFT_CLI_EXPORT_PROTOBUF_H_
#define WEFT_CLI_EXPORT_PROTOBUF_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::cli {

class ProtobufWriter {
 public:
  // Appends to `out`.
  explicit ProtobufWriter(std::string& out) : out_(out) {}

  // uint64, int64 (as its bits), bool, enum.
  void Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
  }
  void Double(uint32_t field, double value) {
    Varint(uint64_t{field} << 3 | 1);
    auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; i++, bits >>= 8) out_ += static_cast<char>(bits & 0xff);
  }
  // A text, or a message that was written to another string.
  void Bytes(uint32_t field, std::string_view bytes) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(bytes.size());
    out_ += bytes;
  }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(0x80 | (value & 0x7f));
    out_ += static_cast<char>(value);
  }

  std::string& out_;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_EXPORT_PROTOBUF_H_
