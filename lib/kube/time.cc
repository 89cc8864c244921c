// SPDX-License-Identifier: Apache-2.0
// RFC 3339.
#include "lib/kube/time.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace weft::kube {

std::string FormatTime(WallTime time, bool micro) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
  const std::time_t t = std::chrono::system_clock::to_time_t(seconds);
  std::tm parts = {};
  gmtime_r(&t, &parts);
  std::array<char, 64> text = {};
  std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string out(text.data(), size);
  if (micro) {
    size = static_cast<std::size_t>(
        std::snprintf(text.data(), text.size(), ".%06lld", static_cast<long long>(rest.count())));
    out.append(text.data(), size);
  }
  return out + "Z";
}

std::optional<WallTime> ParseTime(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || !text.ends_with('Z')) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [text](std::size_t at, std::size_t size) {
    int out = 0;
    for (const char c : text.substr(at, size)) out = out * 10 + (c - '0');
    return out;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 60)
    return std::nullopt;
  const std::chrono::sys_seconds time =
      std::chrono::sys_days(day) + std::chrono::hours(number(11, 2)) +
      std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2));
  // WallTime counts nanoseconds, and ends in 2262.
  return std::clamp<std::chrono::sys_seconds>(time, kEarliestTime, kLatestTime);
}

}  // namespace weft::kube
