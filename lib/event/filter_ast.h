// SPDX-License-Identifier: Apache-2.0
// A filter expression as a tree, made by ParseFilter and read by the compiler. Nodes lie in one
// vector, children before their parents; the last one is the root. Thread-safety: plain values.
#ifndef WEFT_LIB_EVENT_FILTER_AST_H_
#define WEFT_LIB_EVENT_FILTER_AST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/abi/filter.h"

namespace weft {

struct FilterSymbol {
  uint8_t kind = WEFT_FILTER_SYMBOL_FIELD;  // enum weft_filter_symbol_kind
  bool has_index = false;
  uint64_t index = 0;
  std::string name;  // as in struct weft_filter_symbol

  bool operator==(const FilterSymbol&) const = default;
};

enum class FilterNodeKind {
  kInt,
  kFloat,
  kString,
  kPattern,
  kSymbol,
  kUnary,   // op: NEG, PLUS, NOT, BIT_NOT
  kBinary,  // op: SHL to OR, EQ to GE; AND_ELSE is `&&`, OR_ELSE is `||`
};

struct FilterNode {
  FilterNodeKind kind = FilterNodeKind::kInt;
  weft_filter_op op = WEFT_FILTER_OP_RETURN;
  uint64_t integer = 0;  // kInt: two's complement
  double number = 0;     // kFloat
  std::string text;      // kString: its bytes. kPattern: `*` any bytes, `\*` and `\\` themselves
  FilterSymbol symbol;
  size_t left = 0;  // kUnary: the operand
  size_t right = 0;

  // Its place in the expression: that of the operator for kUnary and kBinary, else that of
  // everything.
  size_t offset = 0;
  size_t size = 0;
};

struct FilterAst {
  std::vector<FilterNode> nodes;

  [[nodiscard]] const FilterNode& root() const { return nodes.back(); }
};

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_AST_H_
