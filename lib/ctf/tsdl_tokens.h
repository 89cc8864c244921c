// SPDX-License-Identifier: Apache-2.0
// All tokens of a metadata text with a position, for the two halves of the TSDL parser (types and
// blocks). Thread-safety: one thread.
#ifndef WEFT_LIB_CTF_TSDL_TOKENS_H_
#define WEFT_LIB_CTF_TSDL_TOKENS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/ctf/tsdl_lexer.h"

namespace weft::ctf {

class TsdlTokens {
 public:
  // Gives up behind kMaxBad bad tokens.
  static TsdlTokens Lex(std::string_view text) {
    TsdlTokens tokens;
    TsdlLexer lexer(text);
    size_t bad = 0;
    do {
      tokens.tokens_.push_back(lexer.Next());
      if (tokens.tokens_.back().kind == TokenKind::kBad && ++bad == kMaxBad) {
        tokens.tokens_.push_back({.line = tokens.tokens_.back().line});
      }
    } while (tokens.tokens_.back().kind != TokenKind::kEnd);
    return tokens;
  }

  // Returns the token `ahead` of the current one; behind the last one there are only ends.
  [[nodiscard]] const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] bool At(std::string_view what) const { return Peek().Is(what); }
  [[nodiscard]] bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }

  const Token& Take() {
    const Token& token = Peek();
    if (at_ < tokens_.size()) at_++;
    return token;
  }
  bool Accept(std::string_view what) {
    if (!At(what)) return false;
    at_++;
    return true;
  }
  Status Expect(std::string_view what) {
    if (Accept(what)) return {};
    return Bad("'" + std::string(what) + "' is missing");
  }
  Result<std::string> Word() {
    if (Peek().kind != TokenKind::kWord) return Bad("a name is missing");
    return Take().text;
  }
  // Returns an error at the current token. If that token is malformed, the error is the token's
  // own.
  [[nodiscard]] std::unexpected<Error> Bad(std::string_view what) const {
    const Token& token = Peek();
    return Fail(ErrorCode::kCorrupt,
                "metadata, line " + std::to_string(token.line) + ": " +
                    (token.kind == TokenKind::kBad ? token.text : std::string(what)));
  }

  [[nodiscard]] size_t position() const { return at_; }
  void set_position(size_t at) { at_ = at; }

 private:
  static constexpr size_t kMaxBad = 1000;

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TSDL_TOKENS_H_
