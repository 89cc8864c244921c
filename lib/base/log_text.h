// SPDX-License-Identifier: Apache-2.0
// Makes foreign text fit for a line of a log. Pure functions.
#ifndef WEFT_LIB_BASE_LOG_TEXT_H_
#define WEFT_LIB_BASE_LOG_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// Appends a byte as it is, or as \xNN.
inline void AppendByte(std::string& line, char c, bool is_escaped) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (is_escaped)
    line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  else
    line += c;
}

inline bool IsPrintableAscii(char c) { return c >= ' ' && c < 127; }

// Returns `text` as printable ASCII without quotation marks, at most 300 bytes and "..." of it.
// Other bytes become \xNN.
inline std::string ForLog(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string line;
  for (const char c : text) {
    if (line.size() >= kMost) return line + "...";
    AppendByte(line, c, !IsPrintableAscii(c) || c == '\\' || c == '"');
  }
  return line;
}

// Returns a message of ours with foreign parts as one line without control characters: bytes that
// are not printable ASCII become \xNN. Quotation marks stay.
inline std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) AppendByte(line, c, !IsPrintableAscii(c));
  return line;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_LOG_TEXT_H_
