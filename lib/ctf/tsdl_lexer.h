// SPDX-License-Identifier: Apache-2.0
// Splits TSDL text into tokens. Foreign bytes: every byte sequence gives tokens, some of them bad.
// Thread-safety: one thread per lexer; the text must outlive it.
#ifndef WEFT_LIB_CTF_TSDL_LEXER_H_
#define WEFT_LIB_CTF_TSDL_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::ctf {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,
  kNumber,
  kString,
  kSymbol,
  kBad,  // no token: `text` tells why
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // a word, a string without quotes and escapes, a symbol ("{", ":=", "...")
  uint64_t number = 0;
  int line = 1;

  [[nodiscard]] bool Is(std::string_view symbol_or_word) const {
    return (kind == TokenKind::kSymbol || kind == TokenKind::kWord) && text == symbol_or_word;
  }
};

class TsdlLexer {
 public:
  explicit TsdlLexer(std::string_view text) : text_(text) {}

  // A bad token costs no more than itself: the next one follows behind it.
  Token Next();

 private:
  bool SkipBlanks();
  Token String();
  Token Number();
  bool Escape(std::string& out);
  [[nodiscard]] Token Bad(std::string_view what) const;

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TSDL_LEXER_H_
