// SPDX-License-Identifier: Apache-2.0
// Compiles filter expressions to programs (lib/abi/filter.h). Used by agents, and by commands that
// refuse a wrong filter early. Thread-safety: pure functions.
#ifndef WEFT_LIB_EVENT_FILTER_COMPILER_H_
#define WEFT_LIB_EVENT_FILTER_COMPILER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/event/filter_ast.h"
#include "lib/event/filter_error.h"

namespace weft {

// Returns a program that weft_filter_validate accepts. An error gives the place. Errors are: text
// that the grammar refuses; a string in place of a number, or the reverse, as far as literals tell
// (fields have types only when the program is linked to an event); and more of something than a
// limit of lib/abi/filter.h allows.
[[nodiscard]] FilterResult<std::vector<uint8_t>> CompileFilter(std::string_view expression);

// Compiles a tree that ParseFilter made.
[[nodiscard]] FilterResult<std::vector<uint8_t>> CompileFilter(FilterAst ast);

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_COMPILER_H_
