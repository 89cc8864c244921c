// SPDX-License-Identifier: Apache-2.0
// Bytes as hexadecimal digits, two for each, and back. Pure functions.
#ifndef WEFT_LIB_BASE_HEXADECIMAL_H_
#define WEFT_LIB_BASE_HEXADECIMAL_H_

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline std::string ToHexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

// A character that is no digit counts as 0; an odd last digit is ignored.
inline std::string FromHexadecimal(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    uint8_t byte = 0;
    (void)std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_HEXADECIMAL_H_
