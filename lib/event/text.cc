// SPDX-License-Identifier: Apache-2.0
#include "lib/event/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/base/ascii.h"

namespace weft {
namespace {

// Returns the length of the identifier or number that text begins with; 0: none.
size_t IdentifierPrefix(std::string_view text) {
  if (text.empty() || !IsWordStart(text[0])) return 0;
  size_t n = 1;
  while (n < text.size() && IsWord(text[n])) ++n;
  return n;
}

// Takes one code point off `text`; false: malformed or a control character.
bool TakeCodePoint(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  size_t more = 0;
  uint32_t code = lead;
  uint32_t least = 0;
  if (lead >= 0xf0 && lead < 0xf8) {
    more = 3, code = lead & 7u, least = 0x10000;
  } else if (lead >= 0xe0 && lead < 0xf0) {
    more = 2, code = lead & 15u, least = 0x800;
  } else if (lead >= 0xc0 && lead < 0xe0) {
    more = 1, code = lead & 31u, least = 0x80;
  } else if (lead >= 0x80) {
    return false;
  }
  if (text.size() <= more) return false;
  for (size_t i = 1; i <= more; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80) return false;
    code = code << 6 | (byte & 0x3fu);
  }
  text.remove_prefix(more + 1);
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
  return code >= 0x20 && (code < 0x7f || code > 0x9f);
}

}  // namespace

bool IsPrintableUtf8(std::string_view text) {
  while (!text.empty()) {
    if (!TakeCodePoint(text)) return false;
  }
  return true;
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (IsPrintableUtf8(out)) return out;
  std::ranges::replace_if(out, [](char c) { return static_cast<uint8_t>(c) >= 0x80; }, '?');
  return out;
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IdentifierPrefix(text) == text.size();
}

bool IsFieldPath(std::string_view text) {
  size_t n = IdentifierPrefix(text);
  while (n != 0) {
    text.remove_prefix(n);
    while (text.starts_with('[')) {
      size_t end = 1;
      while (end < text.size() && IsDigit(text[end])) ++end;
      if (end == 1 || end >= text.size() || text[end] != ']') return false;
      text.remove_prefix(end + 1);
    }
    if (text.empty()) return true;
    if (text[0] != '.') return false;
    text.remove_prefix(1);
    n = IdentifierPrefix(text);
  }
  return false;
}

}  // namespace weft
