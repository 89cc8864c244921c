// SPDX-License-Identifier: Apache-2.0
// Formats and parses times as the API writes them, RFC 3339. Thread-safety: pure functions.
#ifndef WEFT_LIB_KUBE_TIME_H_
#define WEFT_LIB_KUBE_TIME_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace weft::kube {

using WallTime = std::chrono::system_clock::time_point;

// "2026-01-02T03:04:05Z"; with `micro` "2026-01-02T03:04:05.000006Z", as MicroTime has it.
std::string FormatTime(WallTime time, bool micro = false);

// What ParseTime makes of earlier and later times: callers may add and subtract years.
inline constexpr std::chrono::sys_seconds kEarliestTime{
    std::chrono::sys_days(std::chrono::year(1800) / 1 / 1)};
inline constexpr std::chrono::sys_seconds kLatestTime{
    std::chrono::sys_days(std::chrono::year(2200) / 1 / 1)};

// Seconds, with any fraction left off, as UTC: "Z" is what API servers write. Else nothing.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_TIME_H_
