// SPDX-License-Identifier: Apache-2.0
// Appends texts and numbers to a string. AppendAll makes room once for all its pieces, and each
// piece writes itself there: printers of whole traces spend their time here. Thread-safety: none.
#ifndef WEFT_CLI_APPEND_H_
#define WEFT_CLI_APPEND_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft::cli {

// The pairs "00" to "99", one after the other.
inline constexpr auto kDigitPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; i++) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Element n is 10^n.
inline constexpr auto kPowersOfTen = [] {
  std::array<uint64_t, 20> powers{1};
  for (size_t i = 1; i < powers.size(); i++) powers[i] = 10 * powers[i - 1];
  return powers;
}();

inline size_t CountDigits(uint64_t value) {
  value |= 1;  // 0 has a digit, too
  // 1233 / 4096 is a little more than log10(2): the result is this number or one more.
  const auto at_least = static_cast<size_t>(std::bit_width(value) * 1233 / 4096);
  return at_least + (value >= kPowersOfTen[at_least] ? 1 : 0);
}

// Writes the last `count` digits of the number, zeros in front included.
inline void PutDigits(char* to, uint64_t value, size_t count) {
  for (; count >= 2; value /= 100) {
    count -= 2;
    std::memcpy(to + count, &kDigitPairs[value % 100 * 2], 2);
  }
  if (count == 1) *to = static_cast<char>('0' + value % 10);
}

// A number as printf's "%d" and "%u" show it.
class Decimal {
 public:
  explicit Decimal(uint64_t value) : magnitude_(value), is_negative_(false) {}
  // `is_signed`: the value is an int64_t.
  Decimal(uint64_t value, bool is_signed)
      : magnitude_(value), is_negative_(is_signed && static_cast<int64_t>(value) < 0) {
    if (is_negative_) magnitude_ = -magnitude_;
  }

  static constexpr size_t kMostBytes = 20;
  [[nodiscard]] char* Put(char* to) const {
    *to = '-';
    to += is_negative_ ? 1 : 0;
    const size_t digits = CountDigits(magnitude_);
    PutDigits(to, magnitude_, digits);
    return to + digits;
  }

 private:
  uint64_t magnitude_;
  bool is_negative_;
};

// Nine digits, for a number below 10^9.
class Nanoseconds {
 public:
  explicit Nanoseconds(uint64_t ns) : ns_(static_cast<uint32_t>(ns)) {}

  static constexpr size_t kMostBytes = 9;
  [[nodiscard]] char* Put(char* to) const {
    PutDigits(to, ns_, kMostBytes);
    return to + kMostBytes;
  }

 private:
  uint32_t ns_;
};

// What stands before a member of a list: " " before the first one, else ", ".
class Separator {
 public:
  explicit Separator(bool is_first) : comma_(is_first ? 0 : 1) {}

  static constexpr size_t kMostBytes = 2;
  [[nodiscard]] char* Put(char* to) const {
    to[0] = ',';
    to[comma_] = ' ';
    return to + comma_ + 1;
  }

 private:
  size_t comma_;
};

// How AppendAll treats each kind of piece: numbers as above, literals, other texts.
namespace pieces {

template <typename Piece>
constexpr size_t MostBytes(const Piece&) {
  return Piece::kMostBytes;
}
template <size_t kSize>
constexpr size_t MostBytes(const char (&)[kSize]) {
  return kSize - 1;
}
inline size_t MostBytes(const std::string_view& text) { return text.size(); }
inline size_t MostBytes(const std::string& text) { return text.size(); }

template <typename Piece>
char* Put(char* to, const Piece& piece) {
  return piece.Put(to);
}
template <size_t kSize>
char* Put(char* to, const char (&text)[kSize]) {
  std::memcpy(to, text, kSize - 1);
  return to + kSize - 1;
}
inline char* Put(char* to, const std::string_view& text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}
inline char* Put(char* to, const std::string& text) { return Put(to, std::string_view(text)); }

}  // namespace pieces

// Appends the pieces one after the other. None of them may lie in `out`.
void AppendAll(std::string& out, const auto&... piece) {
  const size_t before = out.size();
  const size_t most = before + (pieces::MostBytes(piece) + ...);
  out.resize_and_overwrite(most, [&](char* text, size_t /* the capacity, in libstdc++ 12 */) {
    char* to = text + before;
    ((to = pieces::Put(to, piece)), ...);
    return static_cast<size_t>(to - text);
  });
}

}  // namespace weft::cli

#endif  // WEFT_CLI_APPEND_H_
