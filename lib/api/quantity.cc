// SPDX-License-Identifier: Apache-2.0
// Quantities and durations. Sources: the grammars in apimachinery's api/resource/quantity.go and
// in Go's time.ParseDuration.
#include "lib/api/quantity.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "lib/base/ascii.h"

namespace weft::api {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();

// mantissa / 10^decimals. Trailing zeros of the fraction are dropped; more than 19 significant
// digits are more than any value here has.
struct Decimal {
  std::uint64_t mantissa = 0;
  int decimals = 0;
};

// Takes digits with an optional fraction off the front of `text`.
std::optional<Decimal> TakeDecimal(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);

  const std::size_t point = number.find('.');
  if (point != std::string_view::npos) {
    while (number.ends_with('0')) number.remove_suffix(1);
  }
  Decimal decimal;
  bool any_digit = end > 1 || (end == 1 && point == std::string_view::npos);
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] == '.') {
      if (i != point) return std::nullopt;
      continue;
    }
    const auto digit = static_cast<unsigned>(number[i] - '0');
    if (decimal.mantissa > (kMaxUint64 - digit) / 10) return std::nullopt;
    decimal.mantissa = decimal.mantissa * 10 + digit;
    if (i > point) ++decimal.decimals;
  }
  if (!any_digit) return std::nullopt;
  return decimal;
}

// Returns decimal * factor, if that is a whole number that fits.
std::optional<std::uint64_t> Multiply(Decimal decimal, std::uint64_t factor) {
  Wide value = static_cast<Wide>(decimal.mantissa) * factor;
  for (; decimal.decimals > 0 && value != 0; --decimal.decimals) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  if (value > kMaxUint64) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::optional<std::uint64_t> PowerOfTen(int exponent) {
  if (exponent < 0 || exponent > 19) return std::nullopt;
  std::uint64_t value = 1;
  for (int i = 0; i < exponent; ++i) value *= 10;
  return value;
}

// Returns the factor of a suffix; negative powers of ten go into `decimal`.
std::optional<std::uint64_t> SuffixFactor(std::string_view suffix, Decimal& decimal) {
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "kMGTPE";
  constexpr std::string_view kSmall = "mun";
  if (suffix.empty()) return 1;
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const std::size_t at = kBinary.find(suffix[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return std::uint64_t{1} << (10 * (at + 1));
  }
  if (suffix.size() == 1) {
    if (const std::size_t at = kDecimal.find(suffix[0]); at != std::string_view::npos)
      return PowerOfTen(3 * static_cast<int>(at + 1));
    if (const std::size_t at = kSmall.find(suffix[0]); at != std::string_view::npos) {
      decimal.decimals += 3 * static_cast<int>(at + 1);
      return 1;
    }
    return std::nullopt;
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  suffix.remove_prefix(suffix[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (error != std::errc{} || end != suffix.data() + suffix.size()) return std::nullopt;
  if (exponent >= 0) return PowerOfTen(exponent);
  if (exponent < -40) return std::nullopt;
  decimal.decimals -= exponent;
  return 1;
}

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::int64_t kSecond = 1'000'000'000;
// Longest names first: "ms" is not minutes.
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1'000},
                                         {"\u00b5s", 1'000},
                                         {"\u03bcs", 1'000},
                                         {"ms", 1'000'000},
                                         {"h", 3600 * kSecond},
                                         {"m", 60 * kSecond},
                                         {"s", kSecond}}};

const Unit* TakeUnit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return &unit;
  }
  return nullptr;
}

std::unexpected<Error> BadDuration() {
  return Fail(ErrorCode::kInvalid, "not a duration such as 90s, 10m or 1h30m");
}

}  // namespace

Result<std::uint64_t> ParseQuantity(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::optional<Decimal> decimal = TakeDecimal(text);
  std::optional<std::uint64_t> factor;
  if (decimal) factor = SuffixFactor(text, *decimal);
  if (!decimal || !factor) return Fail(ErrorCode::kInvalid, "not a quantity such as 512Ki or 1Mi");
  const std::optional<std::uint64_t> value = Multiply(*decimal, *factor);
  if (!value) return Fail(ErrorCode::kInvalid, "not a whole number below 2^64");
  return *value;
}

std::string FormatQuantity(std::uint64_t value) {
  constexpr std::string_view kSuffixes = "KMGTPE";
  std::size_t power = 0;
  while (value != 0 && value % 1024 == 0 && power < kSuffixes.size()) {
    value /= 1024;
    ++power;
  }
  std::string out = std::to_string(value);
  if (power > 0) {
    out += kSuffixes[power - 1];
    out += 'i';
  }
  return out;
}

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return BadDuration();

  std::uint64_t total = 0;
  while (!text.empty()) {
    const std::optional<Decimal> decimal = TakeDecimal(text);
    if (!decimal) return BadDuration();
    const Unit* unit = TakeUnit(text);
    if (unit == nullptr) return BadDuration();
    const auto part = Multiply(*decimal, static_cast<std::uint64_t>(unit->nanoseconds));
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!part) return Fail(ErrorCode::kInvalid, "not a whole number of nanoseconds that fits");
    if (*part > kMax - total) return Fail(ErrorCode::kInvalid, "longer than 292 years");
    total += *part;
  }
  const auto count = static_cast<std::int64_t>(total);
  return std::chrono::nanoseconds(negative ? -count : count);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  constexpr std::array<Unit, 6> kParts = {{{"h", 3600 * kSecond},
                                           {"m", 60 * kSecond},
                                           {"s", kSecond},
                                           {"ms", 1'000'000},
                                           {"us", 1'000},
                                           {"ns", 1}}};
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  std::string out = count < 0 ? "-" : "";
  std::uint64_t rest = count < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(count)
                                 : static_cast<std::uint64_t>(count);
  for (const Unit& unit : kParts) {
    const auto size = static_cast<std::uint64_t>(unit.nanoseconds);
    if (rest >= size) out += std::to_string(rest / size) + std::string(unit.name);
    rest %= size;
  }
  return out;
}

}  // namespace weft::api
