// SPDX-License-Identifier: Apache-2.0
// The checks and changes that the compiler makes to a tree before it makes instructions. Internal
// to it.
#ifndef WEFT_LIB_EVENT_FILTER_CHECK_H_
#define WEFT_LIB_EVENT_FILTER_CHECK_H_

#include "lib/event/filter_ast.h"
#include "lib/event/filter_error.h"

namespace weft {

// Refuses operators whose operands cannot fit, computes what only constants go into, and puts the
// constant of a comparison or bit operation to the right, where the linker looks for it. A node
// that was computed becomes a constant; what it was made of stays, unused.
[[nodiscard]] FilterResult<void> CheckAndFold(FilterAst& ast);

[[nodiscard]] inline bool IsComparison(weft_filter_op op) {
  return op >= WEFT_FILTER_OP_EQ && op <= WEFT_FILTER_OP_GE;
}
[[nodiscard]] inline bool IsBitOperator(weft_filter_op op) {
  return op >= WEFT_FILTER_OP_SHL && op <= WEFT_FILTER_OP_OR;
}

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_CHECK_H_
