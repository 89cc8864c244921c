// SPDX-License-Identifier: Apache-2.0
// Base64.
#include "lib/base/base64.h"

#include <cstdint>

namespace weft {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < part.size() ? static_cast<std::uint8_t>(part[j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      out += j <= part.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Result<std::string> DecodeBase64(std::string_view text) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "not base64"); };
  if (text.size() % 4 != 0) return corrupt();
  std::string_view digits = text;
  if (digits.ends_with('=')) digits.remove_suffix(1);
  if (digits.ends_with('=')) digits.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : digits) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return corrupt();
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 255);
  }
  if ((bits & ((1u << held) - 1)) != 0) return corrupt();
  return out;
}

}  // namespace weft
