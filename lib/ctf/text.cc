// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/text.h"

#include <bit>
#include <cstring>

namespace weft::ctf {
namespace {

// Returns the length of the well-formed UTF-8 sequence of two to four bytes at `p`, 0 if there is
// none.
size_t SequenceLength(const uint8_t* p, size_t size) {
  const uint8_t lead = p[0];
  uint8_t low = 0x80;
  uint8_t high = 0xbf;  // bounds of the second byte
  size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;   // no overlong forms
    if (lead == 0xed) high = 0x9f;  // no surrogates
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  }
  if (length == 0 || length > size || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  return bytes[0] < 0x80 ? 1 : SequenceLength(bytes, text.size());
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t MakeTextValid(uint8_t* text, size_t size) {
  constexpr uint64_t kHigh = 0x8080808080808080;
  constexpr uint64_t kOnes = 0x0101010101010101;
  size_t at = 0;
  while (at < size) {
    // Takes eight bytes at a time while they are ASCII; missing ones at the end count as NUL.
    uint64_t word = 0;
    if (at + 8 <= size) {
      std::memcpy(&word, text + at, 8);
    } else {
      for (size_t i = 0; at + i < size; i++) word |= uint64_t{text[at + i]} << (8 * i);
    }
    const uint64_t zeros = (word - kOnes) & ~word & kHigh;  // right up to the first NUL
    const uint64_t before_nul = zeros == 0 ? ~uint64_t{0} : (zeros & -zeros) - 1;
    const uint64_t other = word & kHigh & before_nul;
    if (other == 0) {
      if (zeros != 0) return at + static_cast<size_t>(std::countr_zero(zeros)) / 8;
      at += 8;
      continue;
    }
    at += static_cast<size_t>(std::countr_zero(other)) / 8;
    const size_t length = SequenceLength(text + at, size - at);
    if (length == 0) {
      text[at++] = '?';
    } else {
      at += length;
    }
  }
  return at;
}

std::string ValidText(std::string_view text) {
  std::string out(text);
  out.resize(MakeTextValid(reinterpret_cast<uint8_t*>(out.data()), out.size()));
  return out;
}

std::string PrintableName(std::string_view name) {
  std::string out = ValidText(name);
  for (char& c : out) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

std::string IdentifierName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool ok =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!ok) c = '_';
  }
  if (out.empty()) out = "_";
  return out;
}

}  // namespace weft::ctf
