// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/tsdl_lexer.h"

#include <charconv>

#include "lib/base/ascii.h"

namespace weft::ctf {

Token TsdlLexer::Bad(std::string_view what) const {
  return {.kind = TokenKind::kBad, .text = std::string(what), .line = line_};
}

// Returns false if a comment does not end.
bool TsdlLexer::SkipBlanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') line_++;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      at_++;
    } else if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_).starts_with("/*")) {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) {
        at_ = text_.size();
        return false;
      }
      for (; at_ < end; at_++) line_ += text_[at_] == '\n' ? 1 : 0;
      at_ = end + 2;
    } else {
      break;
    }
  }
  return true;
}

Token TsdlLexer::Next() {
  if (!SkipBlanks()) return Bad("a comment does not end");
  Token token{.line = line_};
  if (at_ == text_.size()) return token;
  const char c = text_[at_];
  if (c == '"' || c == '\'') return String();
  if (IsDigit(c)) return Number();
  if (IsWordStart(c)) {
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) at_++;
    token.kind = TokenKind::kWord;
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }
  token.kind = TokenKind::kSymbol;
  for (const std::string_view symbol : {"...", ":=", "->"}) {
    if (text_.substr(at_).starts_with(symbol)) {
      token.text = symbol;
      at_ += symbol.size();
      return token;
    }
  }
  at_++;
  if (std::string_view("[](){}<>*+-:;.=,").find(c) == std::string_view::npos) {
    return Bad("this character has no meaning here");
  }
  token.text = c;
  return token;
}

Token TsdlLexer::Number() {
  Token token{.kind = TokenKind::kNumber, .line = line_};
  const char* begin = text_.data() + at_;
  const char* end = text_.data() + text_.size();
  int base = 10;
  if (*begin == '0' && end - begin > 2 && (begin[1] == 'x' || begin[1] == 'X')) {
    base = 16;
    begin += 2;
  } else if (*begin == '0') {
    base = 8;
  }
  const auto [stop, error] = std::from_chars(begin, end, token.number, base);
  at_ = static_cast<size_t>(stop - text_.data());
  if (error != std::errc()) return Bad("a number is out of range");
  while (at_ < text_.size() &&
         std::string_view("uUlL").find(text_[at_]) != std::string_view::npos) {
    at_++;
  }
  if (at_ < text_.size() && IsWord(text_[at_])) {
    while (at_ < text_.size() && IsWord(text_[at_])) at_++;
    return Bad("a number ends in letters");
  }
  return token;
}

// Returns false if there is no such escape sequence.
bool TsdlLexer::Escape(std::string& out) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"?";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"?";
  if (at_ == text_.size()) return true;  // neither does the string end
  const char c = text_[at_];
  if (const size_t plain = kNames.find(c); plain != std::string_view::npos) {
    out += kValues[plain];
    at_++;
    return true;
  }
  const bool hex = c == 'x';
  if (hex) at_++;
  const size_t digits = std::min<size_t>(3, text_.size() - at_);
  uint32_t value = 0;
  const char* begin = text_.data() + at_;
  const auto [stop, error] = std::from_chars(begin, begin + digits, value, hex ? 16 : 8);
  if (error != std::errc()) return false;
  at_ += static_cast<size_t>(stop - begin);
  out += static_cast<char>(value);
  return true;
}

Token TsdlLexer::String() {
  bool good = true;
  Token token{.kind = TokenKind::kString, .line = line_};
  const char quote = text_[at_++];
  while (at_ < text_.size() && text_[at_] != quote) {
    const char c = text_[at_++];
    if (c == '\n') line_++;
    if (c == '\\') {
      good = Escape(token.text) && good;
    } else {
      token.text += c;
    }
  }
  if (at_ == text_.size()) return Bad("a string does not end");
  at_++;
  return good ? token : Bad("unknown escape sequence in a string");
}

}  // namespace weft::ctf
