// SPDX-License-Identifier: Apache-2.0
// Parses the filter language, LTTng's, from text to a tree. docs/formats/filter.md has the grammar
// and the differences. The text comes from users' resources and is hostile. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_EVENT_FILTER_PARSER_H_
#define WEFT_LIB_EVENT_FILTER_PARSER_H_

#include <string_view>

#include "lib/event/filter_ast.h"
#include "lib/event/filter_error.h"

namespace weft {

// Limits of an expression. kMaxFilterNodes bounds the depth of the tree too, hence the recursion of
// code that walks it.
inline constexpr size_t kMaxFilterText = 4096;   // bytes, as much as a Trace may have
inline constexpr size_t kMaxFilterNodes = 1024;  // operators and operands
inline constexpr int kMaxFilterNesting = 64;     // parentheses and unary operators

[[nodiscard]] FilterResult<FilterAst> ParseFilter(std::string_view expression);

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_PARSER_H_
