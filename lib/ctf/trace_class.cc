// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/trace_class.h"

#include <bit>
#include <cstring>
#include <limits>

#include "lib/base/bytes.h"
#include "lib/ctf/ctf2_parser.h"
#include "lib/ctf/tsdl_parser.h"

namespace weft::ctf {
namespace {

constexpr uint32_t kPacketMagic = 0x75d11d57;
constexpr size_t kMetadataPacketHeader = 4 + 16 + 4 + 4 + 4 + 5;

// Takes metadata out of its packets (specification of CTF 1.8, section 7.1). If a packet is
// malformed or cut off, the text before it remains and `problem` tells why.
std::string Unpack(std::string_view bytes, std::string& problem) {
  std::string text;
  uint32_t first = 0;
  std::memcpy(&first, bytes.data(), sizeof(first));
  const bool swap = first != kPacketMagic;
  const auto number = [swap](uint32_t value) { return swap ? std::byteswap(value) : value; };
  while (!bytes.empty()) {
    ByteReader reader({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    const uint32_t magic = number(reader.Read<uint32_t>());
    reader.Skip(16 + 4);
    const uint32_t content = number(reader.Read<uint32_t>()) / 8;
    const uint32_t packet = number(reader.Read<uint32_t>()) / 8;
    const auto compression = reader.Read<uint8_t>();
    const auto encryption = reader.Read<uint8_t>();
    reader.Skip(3);
    if (!reader.ok() || magic != kPacketMagic || content < kMetadataPacketHeader ||
        packet < content) {
      problem = "a packet of the metadata is broken";
      return text;
    }
    if (compression != 0 || encryption != 0) {
      problem = "the metadata is compressed or encrypted";
      return text;
    }
    if (content > bytes.size()) {
      problem = "the last packet of the metadata is cut off";
      return text += bytes.substr(kMetadataPacketHeader);
    }
    text += bytes.substr(kMetadataPacketHeader, content - kMetadataPacketHeader);
    if (packet > bytes.size()) {
      problem = "the last packet of the metadata is cut off";
      return text;
    }
    bytes.remove_prefix(packet);
  }
  return text;
}

}  // namespace

std::optional<int64_t> ClockClass::ToNs(uint64_t cycles) const {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  // The parts are rounded one by one, as babeltrace2 does. A division of 128 bits takes longer than
  // all else here.
  const auto to_ns = [this](uint64_t value) {
    if (frequency == kNsPerSecond) return static_cast<__int128>(value);
    return static_cast<__int128>(static_cast<unsigned __int128>(value) * kNsPerSecond / frequency);
  };
  const __int128 ns =
      static_cast<__int128>(offset_seconds) * kNsPerSecond + to_ns(offset_cycles) + to_ns(cycles);
  if (ns < std::numeric_limits<int64_t>::min() || ns > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(ns);
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
  std::string problem;
  if (magic == kPacketMagic || magic == std::byteswap(kPacketMagic)) {
    unpacked = Unpack(bytes, problem);
    bytes = unpacked;
    if (bytes.empty() && !problem.empty()) return Fail(ErrorCode::kCorrupt, problem);
  }
  auto trace = bytes.starts_with('\x1e') ? ParseCtf2(bytes) : ParseTsdl(bytes);
  if (trace && !problem.empty()) trace->problems.insert(trace->problems.begin(), problem);
  if (trace && trace->streams.empty() && !trace->problems.empty()) {
    return Fail(ErrorCode::kCorrupt, trace->problems.front());
  }
  return trace;
}

}  // namespace weft::ctf
