// SPDX-License-Identifier: Apache-2.0
// Numbers of the command line. Thread-safety: pure functions.
#ifndef WEFT_CLI_NUMBER_H_
#define WEFT_CLI_NUMBER_H_

#include <charconv>
#include <optional>
#include <string_view>

namespace weft::cli {

// The decimal number that all of `text` is; no value: it is none, or too large for T.
template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace weft::cli

#endif  // WEFT_CLI_NUMBER_H_
