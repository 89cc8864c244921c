// SPDX-License-Identifier: Apache-2.0
// Splits a filter expression into tokens. Internal to the parser.
#ifndef WEFT_LIB_EVENT_FILTER_LEXER_H_
#define WEFT_LIB_EVENT_FILTER_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/event/filter_error.h"

namespace weft {

enum class FilterTokenKind {
  kEnd,
  kInteger,
  kFloat,
  kString,      // text: the bytes, without quotes, escapes resolved
  kPattern,     // text: as FilterNode::text of a kPattern
  kIdentifier,  // may hold ':'
  kRoot,        // `$` and an identifier
  kOperator,    // also brackets, `.` and `->`
};

struct FilterToken {
  FilterTokenKind kind = FilterTokenKind::kEnd;
  std::string_view source;  // what stands in the expression
  size_t offset = 0;
  uint64_t integer = 0;
  double number = 0;
  std::string text;

  [[nodiscard]] bool Is(std::string_view operator_text) const {
    return kind == FilterTokenKind::kOperator && source == operator_text;
  }
};

class FilterLexer {
 public:
  explicit FilterLexer(std::string_view expression) : expression_(expression) {}

  // Returns the next token; at the end, always kEnd.
  FilterResult<FilterToken> Next();

 private:
  FilterResult<FilterToken> Number();
  FilterResult<FilterToken> Text();
  FilterResult<FilterToken> Operator();
  FilterResult<void> SkipBlanks();
  FilterToken Take(FilterTokenKind kind, size_t size);

  std::string_view expression_;
  size_t at_ = 0;
};

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_LEXER_H_
