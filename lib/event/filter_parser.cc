// SPDX-License-Identifier: Apache-2.0
// Operators by climbing precedences; `&`, `^` and `|` bind stronger than comparisons, unlike C's.
#include "lib/event/filter_parser.h"

#include <array>
#include <string>
#include <utility>

#include "lib/event/filter_lexer.h"

namespace weft {
namespace {

struct BinaryOperator {
  std::string_view text;
  int precedence;  // the larger, the stronger
  weft_filter_op op;
};

constexpr std::array<BinaryOperator, 13> kBinary = {{
    {"||", 1, WEFT_FILTER_OP_OR_ELSE},
    {"&&", 2, WEFT_FILTER_OP_AND_ELSE},
    {"==", 3, WEFT_FILTER_OP_EQ},
    {"!=", 3, WEFT_FILTER_OP_NE},
    {"<", 4, WEFT_FILTER_OP_LT},
    {"<=", 4, WEFT_FILTER_OP_LE},
    {">", 4, WEFT_FILTER_OP_GT},
    {">=", 4, WEFT_FILTER_OP_GE},
    {"|", 5, WEFT_FILTER_OP_OR},
    {"^", 6, WEFT_FILTER_OP_XOR},
    {"&", 7, WEFT_FILTER_OP_AND},
    {"<<", 8, WEFT_FILTER_OP_SHL},
    {">>", 8, WEFT_FILTER_OP_SHR},
}};

const BinaryOperator* FindBinary(const FilterToken& token) {
  for (const BinaryOperator& op : kBinary) {
    if (token.Is(op.text)) return &op;
  }
  return nullptr;
}

bool IsArithmetic(const FilterToken& token) {
  return token.Is("*") || token.Is("/") || token.Is("%") || token.Is("+") || token.Is("-");
}

std::string Shown(const FilterToken& token) {
  if (token.kind == FilterTokenKind::kEnd) return "the end";
  return "'" + std::string(token.source) + "'";
}

FilterError At(const FilterToken& token, std::string message) {
  return FilterError{
      .message = std::move(message), .offset = token.offset, .size = token.source.size()};
}

class Parser {
 public:
  explicit Parser(std::string_view expression) : lexer_(expression) {}

  FilterResult<FilterAst> Run() {
    WEFT_TRY(Advance());
    WEFT_TRY(Binary(1));
    if (token_.kind != FilterTokenKind::kEnd) return std::unexpected(Misplaced());
    return std::move(ast_);
  }

 private:
  FilterResult<void> Advance() {
    WEFT_ASSIGN(token_, lexer_.Next());
    return {};
  }

  // Returns why the current token cannot follow a complete operand.
  [[nodiscard]] FilterError Misplaced() const {
    if (IsArithmetic(token_))
      return At(token_, "arithmetic (" + std::string(token_.source) +
                            ") is not part of the filter language; bit operators are");
    if (token_.Is("=")) return At(token_, "equality is written ==");
    if (token_.Is("->")) return At(token_, "members are written with a dot");
    if (token_.Is(")")) return At(token_, "this ) closes nothing");
    return At(token_, "expected an operator, not " + Shown(token_));
  }

  FilterResult<size_t> Add(FilterNode node) {
    if (ast_.nodes.size() == kMaxFilterNodes)
      return std::unexpected(FilterError{
          .message = "more than " + std::to_string(kMaxFilterNodes) + " operators and operands",
          .offset = node.offset,
          .size = node.size,
          .code = ErrorCode::kLimit});
    ast_.nodes.push_back(std::move(node));
    return ast_.nodes.size() - 1;
  }

  // Parses an operand and all operators of at least this precedence behind it.
  FilterResult<size_t> Binary(int least) {
    WEFT_ASSIGN(size_t left, Unary());
    for (;;) {
      const BinaryOperator* op = FindBinary(token_);
      if (op == nullptr || op->precedence < least) return left;
      const FilterToken where = token_;
      WEFT_TRY(Advance());
      WEFT_ASSIGN(const size_t right, Binary(op->precedence + 1));
      WEFT_ASSIGN(left, Add({.kind = FilterNodeKind::kBinary,
                             .op = op->op,
                             .left = left,
                             .right = right,
                             .offset = where.offset,
                             .size = where.source.size()}));
    }
  }

  FilterResult<size_t> Unary() {
    static constexpr std::array<std::pair<std::string_view, weft_filter_op>, 4> kUnary = {{
        {"!", WEFT_FILTER_OP_NOT},
        {"-", WEFT_FILTER_OP_NEG},
        {"+", WEFT_FILTER_OP_PLUS},
        {"~", WEFT_FILTER_OP_BIT_NOT},
    }};
    for (const auto& [text, op] : kUnary) {
      if (!token_.Is(text)) continue;
      const FilterToken where = token_;
      WEFT_TRY(Enter());
      WEFT_TRY(Advance());
      WEFT_ASSIGN(const size_t operand, Unary());
      --nesting_;
      return Add({.kind = FilterNodeKind::kUnary,
                  .op = op,
                  .left = operand,
                  .offset = where.offset,
                  .size = where.source.size()});
    }
    return Operand();
  }

  FilterResult<void> Enter() {
    if (++nesting_ <= kMaxFilterNesting) return {};
    FilterError error =
        At(token_, "nested more than " + std::to_string(kMaxFilterNesting) + " deep");
    error.code = ErrorCode::kLimit;
    return std::unexpected(std::move(error));
  }

  FilterResult<size_t> Operand() {
    switch (token_.kind) {
      case FilterTokenKind::kInteger:
        return Constant(FilterNodeKind::kInt);
      case FilterTokenKind::kFloat:
        return Constant(FilterNodeKind::kFloat);
      case FilterTokenKind::kString:
        return Constant(FilterNodeKind::kString);
      case FilterTokenKind::kPattern:
        return Constant(FilterNodeKind::kPattern);
      case FilterTokenKind::kIdentifier:
        return Field();
      case FilterTokenKind::kRoot:
        return Context();
      default:
        break;
    }
    if (token_.Is("(")) return Parentheses();
    return std::unexpected(At(token_, "expected an operand, not " + Shown(token_)));
  }

  FilterResult<size_t> Constant(FilterNodeKind kind) {
    FilterNode node{.kind = kind,
                    .integer = token_.integer,
                    .number = token_.number,
                    .text = std::move(token_.text),
                    .offset = token_.offset,
                    .size = token_.source.size()};
    WEFT_TRY(Advance());
    return Add(std::move(node));
  }

  FilterResult<size_t> Parentheses() {
    const FilterToken open = token_;
    WEFT_TRY(Enter());
    WEFT_TRY(Advance());
    WEFT_ASSIGN(const size_t inner, Binary(1));
    if (token_.kind == FilterTokenKind::kEnd)
      return std::unexpected(At(open, "this ( is never closed"));
    if (!token_.Is(")")) return std::unexpected(Misplaced());
    --nesting_;
    WEFT_TRY(Advance());
    return inner;
  }

  FilterResult<size_t> AddSymbol(FilterSymbol symbol, size_t begin) {
    return Add({.kind = FilterNodeKind::kSymbol,
                .symbol = std::move(symbol),
                .offset = begin,
                .size = end_ - begin});
  }

  // The current token belongs to a name.
  FilterResult<void> TakeInName() {
    end_ = token_.offset + token_.source.size();
    return Advance();
  }

  FilterResult<void> MemberName(FilterSymbol& symbol) {
    if (token_.kind != FilterTokenKind::kIdentifier)
      return std::unexpected(At(token_, "expected a field's name, not " + Shown(token_)));
    if (token_.source.find(':') != std::string_view::npos)
      return std::unexpected(At(token_,
                                "a field's name has no ':' (contexts are $ctx.name and "
                                "$app.provider:name)"));
    symbol.name += token_.source;
    if (symbol.name.size() >= WEFT_EVENT_NAME_MAX)
      return std::unexpected(At(token_, "the name is too long"));
    return TakeInName();
  }

  // name, members
  FilterResult<size_t> Field() {
    FilterSymbol symbol;
    const size_t begin = token_.offset;
    WEFT_TRY(MemberName(symbol));
    WEFT_TRY(Members(symbol));
    return AddSymbol(std::move(symbol), begin);
  }

  // An index that was not the last one belongs to the name.
  static void IndexIntoName(FilterSymbol& symbol) {
    if (symbol.has_index) symbol.name += "[" + std::to_string(symbol.index) + "]";
    symbol.has_index = false;
    symbol.index = 0;
  }

  // ( "." name | "[" number "]" )*
  FilterResult<void> Members(FilterSymbol& symbol) {
    for (;;) {
      if (token_.Is("->")) return std::unexpected(Misplaced());
      const bool dot = token_.Is(".");
      if (!dot && !token_.Is("[")) return {};
      IndexIntoName(symbol);
      WEFT_TRY(Advance());
      if (dot) {
        symbol.name += '.';
        WEFT_TRY(MemberName(symbol));
      } else {
        WEFT_TRY(Index(symbol));
      }
    }
  }

  // number "]"
  FilterResult<void> Index(FilterSymbol& symbol) {
    if (token_.kind != FilterTokenKind::kInteger)
      return std::unexpected(At(token_, "an index is a constant integer, not " + Shown(token_)));
    symbol.has_index = true;
    symbol.index = token_.integer;
    WEFT_TRY(Advance());
    if (!token_.Is("]")) return std::unexpected(At(token_, "expected ], not " + Shown(token_)));
    return TakeInName();
  }

  // ( "$ctx" "." name | "$app" "." provider ":" name ), members
  FilterResult<size_t> Context() {
    const size_t begin = token_.offset;
    FilterSymbol symbol;
    const bool app = token_.source == "$app";
    symbol.kind = app ? WEFT_FILTER_SYMBOL_APP : WEFT_FILTER_SYMBOL_CONTEXT;
    if (!app && token_.source != "$ctx")
      return std::unexpected(At(token_, "unknown " + Shown(token_) + " (there are $ctx and $app)"));
    WEFT_TRY(Advance());
    const std::string form = app ? "$app.provider:name" : "$ctx.name";
    if (!token_.Is(".")) return std::unexpected(At(token_, "a context is written " + form));
    WEFT_TRY(Advance());
    if (token_.kind != FilterTokenKind::kIdentifier)
      return std::unexpected(At(token_, "a context is written " + form));
    symbol.name = token_.source;
    const size_t colon = symbol.name.find(':');
    const bool has_both =
        colon != std::string::npos && colon != 0 && colon + 1 < symbol.name.size();
    if (app && !has_both) return std::unexpected(At(token_, "a context is written " + form));
    if (symbol.name.size() >= WEFT_EVENT_NAME_MAX)
      return std::unexpected(At(token_, "the name is too long"));
    WEFT_TRY(TakeInName());
    // No context has members yet: a name that is not there, which the grammar allows.
    WEFT_TRY(Members(symbol));
    IndexIntoName(symbol);
    return AddSymbol(std::move(symbol), begin);
  }

  FilterLexer lexer_;
  FilterToken token_;
  size_t end_ = 0;  // behind the last token of the current name
  FilterAst ast_;
  int nesting_ = 0;
};

}  // namespace

FilterResult<FilterAst> ParseFilter(std::string_view expression) {
  if (expression.size() > kMaxFilterText)
    return std::unexpected(
        FilterError{.message = "longer than " + std::to_string(kMaxFilterText) + " bytes",
                    .offset = kMaxFilterText,
                    .code = ErrorCode::kLimit});
  return Parser(expression).Run();
}

}  // namespace weft
