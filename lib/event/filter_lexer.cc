// SPDX-License-Identifier: Apache-2.0
#include "lib/event/filter_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "lib/base/ascii.h"

namespace weft {
namespace {

// The colon is for contexts ($app.provider:name): no field's name has one.
bool IsNameStart(char c) { return IsWordStart(c) || c == ':'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

std::optional<uint32_t> HexDigit(char c) {
  if (IsDigit(c)) return static_cast<uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

// Is it one of C's suffixes of integers: any order of u and l or ll?
bool IsIntegerSuffix(std::string_view s) {
  static constexpr std::array<std::string_view, 3> kLongs = {"", "l", "ll"};
  std::string lower(s);
  // "lL" is no suffix in C.
  if (lower.find("lL") != std::string::npos || lower.find("Ll") != std::string::npos) return false;
  std::ranges::replace(lower, 'L', 'l');
  std::ranges::replace(lower, 'U', 'u');
  return std::ranges::any_of(kLongs, [&](std::string_view longs) {
    return lower == longs || lower == "u" + std::string(longs) || lower == std::string(longs) + "u";
  });
}

enum class NumberError { kNone, kMalformed, kTooLarge };

NumberError ParseInteger(std::string_view text, uint64_t& value) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with('0')) {
    base = 8;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc::result_out_of_range) return NumberError::kTooLarge;
  if (error != std::errc{}) return NumberError::kMalformed;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return IsIntegerSuffix(text) ? NumberError::kNone : NumberError::kMalformed;
}

NumberError ParseFloat(std::string_view text, double& value) {
  auto format = std::chars_format::general;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    format = std::chars_format::hex;
    text.remove_prefix(2);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format);
  if (error == std::errc::result_out_of_range) return NumberError::kTooLarge;
  if (error != std::errc{}) return NumberError::kMalformed;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const bool has_suffix = text == "f" || text == "F" || text == "l" || text == "L";
  return text.empty() || has_suffix ? NumberError::kNone : NumberError::kMalformed;
}

// Returns how many characters from `text` on belong to a number, well-formed or not.
size_t NumberExtent(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  size_t n = 0;
  while (n < text.size()) {
    const char c = text[n];
    const bool exponent = n > 0 && (hex ? (text[n - 1] == 'p' || text[n - 1] == 'P')
                                        : (text[n - 1] == 'e' || text[n - 1] == 'E'));
    const bool sign =
        (c == '+' || c == '-') && exponent && n + 1 < text.size() && IsDigit(text[n + 1]);
    if (!IsWord(c) && c != '.' && !sign) break;
    ++n;
  }
  return n;
}

bool LooksLikeFloat(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  return text.find_first_of(hex ? ".pP" : ".eE") != std::string_view::npos;
}

FilterError At(size_t offset, size_t size, std::string message) {
  return FilterError{.message = std::move(message), .offset = offset, .size = size};
}

// Returns the character that an escape of one letter means.
std::optional<char> SimpleEscape(char c) {
  switch (c) {
    case '\\':
    case '"':
    case '\'':
    case '?':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return std::nullopt;
  }
}

// A string literal while it is read: as plain bytes, and as a pattern.
struct Literal {
  std::string plain;
  std::string pattern;
  bool has_star = false;

  void Add(char c) {
    plain += c;
    if (c == '*' || c == '\\') pattern += '\\';
    pattern += c;
  }
  void AddStar() {
    if (!has_star || !ends_in_star) pattern += '*';
    has_star = true;
    ends_in_star = true;
  }
  bool ends_in_star = false;
};

// Reads the escape at text[0] == '\\'. Returns its size; 0: there is no such escape.
size_t TakeEscape(std::string_view text, Literal& literal) {
  if (text.size() < 2) return 0;
  literal.ends_in_star = false;
  if (text[1] == '*') {
    literal.Add('*');
    return 2;
  }
  if (text[1] == 'x' && text.size() >= 4) {
    const auto high = HexDigit(text[2]);
    const auto low = HexDigit(text[3]);
    if (!high || !low || (*high | *low) == 0) return 0;
    literal.Add(static_cast<char>(*high << 4 | *low));
    return 4;
  }
  const auto c = SimpleEscape(text[1]);
  if (!c) return 0;
  literal.Add(*c);
  return 2;
}

}  // namespace

FilterToken FilterLexer::Take(FilterTokenKind kind, size_t size) {
  FilterToken token{.kind = kind, .source = expression_.substr(at_, size), .offset = at_};
  at_ += token.source.size();
  return token;
}

FilterResult<void> FilterLexer::SkipBlanks() {
  while (at_ < expression_.size()) {
    const std::string_view rest = expression_.substr(at_);
    if (rest.find_first_of(" \t\r\n") == 0) {
      ++at_;
    } else if (rest.starts_with("//")) {
      at_ = std::min(expression_.find('\n', at_), expression_.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = expression_.find("*/", at_ + 2);
      if (end == std::string_view::npos)
        return std::unexpected(At(at_, 2, "the comment has no end"));
      at_ = end + 2;
    } else {
      break;
    }
  }
  return {};
}

FilterResult<FilterToken> FilterLexer::Number() {
  FilterToken token = Take(FilterTokenKind::kInteger, NumberExtent(expression_.substr(at_)));
  NumberError error = NumberError::kNone;
  if (LooksLikeFloat(token.source)) {
    token.kind = FilterTokenKind::kFloat;
    error = ParseFloat(token.source, token.number);
  } else {
    error = ParseInteger(token.source, token.integer);
  }
  const std::string quoted = "'" + std::string(token.source) + "'";
  if (error == NumberError::kMalformed)
    return std::unexpected(At(token.offset, token.source.size(), quoted + " is no number"));
  if (error == NumberError::kTooLarge)
    return std::unexpected(
        At(token.offset, token.source.size(), quoted + " needs more than 64 bits"));
  return token;
}

FilterResult<FilterToken> FilterLexer::Text() {
  const size_t begin = at_;
  const char quote = expression_[begin];
  Literal literal;
  size_t end = begin + 1;
  while (end < expression_.size() && expression_[end] != quote) {
    const char c = expression_[end];
    size_t size = 1;
    if (c == 0) return std::unexpected(At(end, 1, "a NUL in a string"));
    if (c == '*') {
      literal.AddStar();
      literal.plain += '*';
    } else if (c == '\\') {
      size = TakeEscape(expression_.substr(end), literal);
      if (size == 0)
        return std::unexpected(
            At(end, 2, "unknown escape (write \\\\ for a backslash, \\* for a star)"));
    } else {
      literal.ends_in_star = false;
      literal.Add(c);
    }
    end += size;
  }
  if (end >= expression_.size())
    return std::unexpected(At(begin, 1, std::string("the string has no closing ") + quote));
  FilterToken token = Take(literal.has_star ? FilterTokenKind::kPattern : FilterTokenKind::kString,
                           end + 1 - begin);
  token.text = literal.has_star ? std::move(literal.pattern) : std::move(literal.plain);
  return token;
}

FilterResult<FilterToken> FilterLexer::Operator() {
  static constexpr std::array<std::string_view, 31> kOperators = {
      "->", ">>", "<<", "==", "!=", "<=", ">=", "&&", "||", ":=", "[", "]", "(", ")", "{", "}",
      "*",  "+",  "-",  "%",  "/",  "<",  ">",  "!",  "^",  "&",  "|", "~", ".", "=", ","};
  const std::string_view rest = expression_.substr(at_);
  for (const std::string_view op : kOperators) {
    if (rest.starts_with(op)) return Take(FilterTokenKind::kOperator, op.size());
  }
  size_t size = 1;
  while (size < rest.size() && (static_cast<uint8_t>(rest[size]) & 0xc0) == 0x80) ++size;
  return std::unexpected(At(at_, size, "this character has no meaning here"));
}

FilterResult<FilterToken> FilterLexer::Next() {
  WEFT_TRY(SkipBlanks());
  if (at_ == expression_.size()) return Take(FilterTokenKind::kEnd, 0);
  const std::string_view rest = expression_.substr(at_);
  const bool dollar = rest[0] == '$' && rest.size() > 1 && IsNameStart(rest[1]);
  if (IsNameStart(rest[0]) || dollar) {
    size_t size = 1;
    while (size < rest.size() && IsNamePart(rest[size])) ++size;
    return Take(dollar ? FilterTokenKind::kRoot : FilterTokenKind::kIdentifier, size);
  }
  if (IsDigit(rest[0]) || (rest[0] == '.' && rest.size() > 1 && IsDigit(rest[1]))) return Number();
  if (rest[0] == '"' || rest[0] == '\'') return Text();
  return Operator();
}

}  // namespace weft
