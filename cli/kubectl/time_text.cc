// SPDX-License-Identifier: Apache-2.0
// See time_text.h.
#include "cli/kubectl/time_text.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "lib/api/quantity.h"
#include "lib/base/ascii.h"

namespace weft::kubectl {
namespace {

using std::chrono::nanoseconds;

// Takes ".5" from the beginning, as nanoseconds.
nanoseconds TakeFraction(std::string_view& rest) {
  if (!rest.starts_with('.')) return nanoseconds(0);
  rest.remove_prefix(1);
  std::int64_t fraction = 0;
  std::int64_t unit = 1'000'000'000;
  while (!rest.empty() && IsDigit(rest.front())) {
    unit /= 10;
    fraction += unit * (rest.front() - '0');
    rest.remove_prefix(1);
  }
  return nanoseconds(fraction);
}

// "Z", "+01:00".
std::optional<std::chrono::minutes> ParseZone(std::string_view text) {
  if (text == "Z") return std::chrono::minutes(0);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  for (const std::size_t at : {1, 2, 4, 5}) {
    if (!IsDigit(text[at])) return std::nullopt;
  }
  const std::chrono::minutes size((text[1] - '0') * 600 + (text[2] - '0') * 60 +
                                  (text[4] - '0') * 10 + (text[5] - '0'));
  return text[0] == '+' ? size : -size;
}

std::optional<kube::WallTime> ParseAbsolute(std::string_view text) {
  constexpr std::size_t kSeconds = 19;  // "2026-01-02T03:04:05"
  if (text.size() <= kSeconds) return std::nullopt;
  const auto seconds = kube::ParseTime(std::string(text.substr(0, kSeconds)) + "Z");
  std::string_view rest = text.substr(kSeconds);
  const nanoseconds fraction = TakeFraction(rest);
  const auto zone = ParseZone(rest);
  if (!seconds || !zone) return std::nullopt;
  return *seconds + fraction - *zone;
}

}  // namespace

Result<std::uint64_t> ParseTimeText(std::string_view text, kube::WallTime now) {
  auto time = ParseAbsolute(text);
  if (const auto ago = api::ParseDuration(text); !time && ago && *ago >= nanoseconds(0))
    time = now - *ago;
  if (!time)
    return Fail(ErrorCode::kInvalid, "\"" + std::string(text) +
                                         "\" is no time: write 2026-01-02T03:04:05Z, or how long "
                                         "ago, 5m");
  const auto since_1970 = std::chrono::duration_cast<nanoseconds>(time->time_since_epoch());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, since_1970.count()));
}

}  // namespace weft::kubectl
