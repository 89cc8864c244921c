// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/trace_class.h"

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/ctf/ctf2_parser.h"
#include "lib/ctf/tsdl_parser.h"

namespace weft::ctf {
namespace {

constexpr uint32_t kPacketMagic = 0x75d11d57;
constexpr size_t kPacketHeader = 4 + 16 + 4 + 4 + 4 + 5;

// Takes metadata out of its packets (specification of CTF 1.8, section 7.1).
Result<std::string> Unpack(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    ByteReader reader({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    const auto magic = reader.Read<uint32_t>();
    reader.Skip(16 + 4);
    const uint32_t content = reader.Read<uint32_t>() / 8;
    const uint32_t packet = reader.Read<uint32_t>() / 8;
    const auto compression = reader.Read<uint8_t>();
    const auto encryption = reader.Read<uint8_t>();
    reader.Skip(3);
    if (!reader.ok() || magic != kPacketMagic || content < kPacketHeader || packet < content ||
        packet > bytes.size()) {
      return Fail(ErrorCode::kCorrupt, "a packet of the metadata is broken");
    }
    if (compression != 0 || encryption != 0) {
      return Fail(ErrorCode::kUnsupported, "the metadata is compressed or encrypted");
    }
    text += bytes.substr(kPacketHeader, content - kPacketHeader);
    bytes.remove_prefix(packet);
  }
  return text;
}

}  // namespace

int64_t ClockClass::ToNs(uint64_t cycles) const {
  const uint64_t total = offset_cycles + cycles;
  const auto seconds = static_cast<uint64_t>(offset_seconds) * 1'000'000'000;
  if (frequency == 1'000'000'000) return static_cast<int64_t>(seconds + total);
  const auto wide = static_cast<unsigned __int128>(total) * 1'000'000'000 / frequency;
  return static_cast<int64_t>(seconds + static_cast<uint64_t>(wide));
}

const std::string* TraceClass::EnvText(std::string_view name) const {
  for (const EnvEntry& entry : env) {
    if (entry.name == name) return std::get_if<std::string>(&entry.value);
  }
  return nullptr;
}

Result<TraceClass> ParseMetadata(std::string_view bytes) {
  if (bytes.size() > kMaxMetadataBytes) {
    return Fail(ErrorCode::kLimit, "the metadata is too large");
  }
  uint32_t magic = 0;
  if (bytes.size() >= sizeof(magic)) std::memcpy(&magic, bytes.data(), sizeof(magic));
  std::string unpacked;
  if (magic == kPacketMagic) {
    WEFT_ASSIGN(unpacked, Unpack(bytes));
    bytes = unpacked;
  }
  return bytes.starts_with('\x1e') ? ParseCtf2(bytes) : ParseTsdl(bytes);
}

}  // namespace weft::ctf
