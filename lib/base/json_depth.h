// SPDX-License-Identifier: Apache-2.0
// The depth of a foreign JSON text, before it is parsed. nlohmann's parser tells it to a callback,
// but with a callback it looks at all earlier items of a list after each object in it: a list of a
// million objects took minutes.
#ifndef WEFT_LIB_BASE_JSON_DEPTH_H_
#define WEFT_LIB_BASE_JSON_DEPTH_H_

#include <cstddef>
#include <string_view>

namespace weft {

// Returns whether more than `most` lists and objects contain each other. Looks once at each
// character of the text, which need not be JSON.
constexpr bool NestsDeeperThan(std::string_view json, int most) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++at;
    if (in_string) continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > most) return true;
  }
  return false;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_JSON_DEPTH_H_
