// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_error.h"

#include <algorithm>
#include <cstdint>

namespace weft {
namespace {

// Code points in UTF-8; bytes that are none count as one each.
size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace

size_t FilterError::Column(std::string_view expression) const {
  return CountCharacters(expression.substr(0, offset)) + 1;
}

Error FilterError::ToError(std::string_view expression) const {
  return Error{code, 0, "filter, column " + std::to_string(Column(expression)) + ": " + message};
}

std::string FilterError::Render(std::string_view expression) const {
  std::string shown(expression);
  for (char& c : shown) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  const size_t begin = std::min(offset, expression.size());
  const size_t marks = std::max<size_t>(1, CountCharacters(expression.substr(begin, size)));
  std::string out = ToError(expression).message + "\n  " + shown + "\n  ";
  out.append(Column(expression) - 1, ' ');
  out += '^';
  out.append(marks - 1, '~');
  return out + '\n';
}

}  // namespace weft
