// SPDX-License-Identifier: Apache-2.0
// Makes foreign text fit for a line of a log. Pure functions.
#ifndef WEFT_LIB_BASE_LOG_TEXT_H_
#define WEFT_LIB_BASE_LOG_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// Returns `text` as printable ASCII without quotation marks, at most 300 bytes and "..." of it.
// Other bytes become \xNN.
inline std::string ForLog(std::string_view text) {
  constexpr std::size_t kMost = 300;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    if (line.size() >= kMost) return line + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 127 && c != '\\' && c != '"') {
      line += c;
    } else {
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return line;
}

// Returns a message of ours with foreign parts as one line without control characters: bytes that
// are not printable ASCII become \xNN. Quotation marks stay.
inline std::string OneLine(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 127) {
      line += c;
    } else {
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return line;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_LOG_TEXT_H_
