// SPDX-License-Identifier: Apache-2.0
// Names and order of log levels.
#include "lib/api/log_level.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace weft::api {
namespace {

constexpr std::array<std::string_view, 15> kNames = {
    "emerg",        "alert",      "crit",           "err",           "warning",
    "notice",       "info",       "debug_system",   "debug_program", "debug_process",
    "debug_module", "debug_unit", "debug_function", "debug_line",    "debug"};

}  // namespace

std::span<const std::string_view> LogLevelNames() { return kNames; }

std::optional<LogLevel> ParseLogLevel(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    name.push_back(c == '-' ? '_' : upper ? static_cast<char>(c - 'A' + 'a') : c);
  }
  if (name.starts_with("trace_")) name.erase(0, 6);
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<LogLevel>(at - kNames.begin());
}

LogLevelRule::Bounds LogLevelRule::AdmittedLevels() const {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto number = [](LogLevel level) { return static_cast<std::int32_t>(level); };
  if (exactly) return {number(*exactly), number(*exactly)};
  if (at_least) return {Limits::min(), number(*at_least)};
  if (range) {
    const auto [low, high] = std::minmax({number(range->from), number(range->to)});
    return {low, high};
  }
  return {Limits::min(), Limits::max()};
}

}  // namespace weft::api
