// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_error.h"

#include <algorithm>
#include <cstdint>

#include "lib/event/text.h"

namespace weft {
namespace {

// Characters of a line that are shown around the place. With the indent, they take a terminal's
// width.
constexpr size_t kShownBefore = 50;
constexpr size_t kShownBehind = 22;

bool BeginsCharacter(char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, BeginsCharacter));
}

// A YAML block ends with a line break: what is missing at the end is not looked for on a line
// below.
std::string_view WithoutLastBreaks(std::string_view expression) {
  return expression.substr(0, expression.find_last_not_of('\n') + 1);
}

// Returns where the line that contains `offset` begins.
size_t LineBegin(std::string_view expression, size_t offset) {
  return expression.substr(0, offset).rfind('\n') + 1;
}

// Return the place `count` characters on from `at`, or back.
size_t Forward(std::string_view line, size_t at, size_t count) {
  while (at < line.size() && count > 0) {
    ++at;
    if (at == line.size() || BeginsCharacter(line[at])) --count;
  }
  return at;
}
size_t Back(std::string_view line, size_t at, size_t count) {
  while (at > 0 && count > 0) {
    --at;
    if (BeginsCharacter(line[at])) --count;
  }
  return at;
}

}  // namespace

std::string FilterError::Place(std::string_view expression) const {
  const std::string_view shown = WithoutLastBreaks(expression);
  const size_t place = std::min(offset, shown.size());
  std::string column = "column " + std::to_string(place - LineBegin(shown, place) + 1);
  if (shown.find('\n') == std::string_view::npos) return column;
  return "line " + std::to_string(1 + std::ranges::count(shown.substr(0, place), '\n')) + ", " +
         column;
}

Error FilterError::ToError(std::string_view expression) const {
  return Error{code, 0, "filter, " + Place(expression) + ": " + message};
}

std::string FilterError::Excerpt(std::string_view expression) const {
  const std::string_view shown = WithoutLastBreaks(expression);
  const size_t begin = LineBegin(shown, std::min(offset, shown.size()));
  const std::string line = Printable(shown.substr(begin, shown.find('\n', begin) - begin));
  const size_t place = std::min(offset - begin, line.size());
  const size_t from = Back(line, place, kShownBefore);
  const size_t to = Forward(line, place, kShownBehind);
  const std::string cut = from > 0 ? "..." : "";
  std::string out =
      "  " + cut + line.substr(from, to - from) + (to < line.size() ? "..." : "") + "\n  ";
  out.append(cut.size() + CountCharacters(line.substr(from, place - from)), ' ');
  out += '^';
  const size_t marked = std::min(size, to - place);
  out.append(std::max<size_t>(1, CountCharacters(line.substr(place, marked))) - 1, '~');
  return out + '\n';
}

}  // namespace weft
