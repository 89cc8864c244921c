// SPDX-License-Identifier: Apache-2.0
// The named sets of spec.user.functions: which functions of libraries each has, with the types of
// their arguments and of what they return. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_FUNCTION_SETS_H_
#define WEFT_LIB_API_FUNCTION_SETS_H_

#include <array>
#include <string_view>
#include <vector>

#include "lib/api/trace.h"

namespace weft::api {

// As a Trace writes them, by enum FunctionSet.
inline constexpr std::array<std::string_view, 5> kFunctionSets = {"malloc", "pthread", "dl", "io",
                                                                  "ssl"};

constexpr std::string_view NameOf(FunctionSet set) {
  return kFunctionSets[static_cast<std::size_t>(set)];
}

// Returns the rules that a rule with a set stands for: one for each function and library. A rule
// without a set stands for itself.
std::vector<FunctionRule> ExpandSet(const FunctionRule& rule);

// Is it the name of a function of the C library that one of the sets has? These never run in a
// child of posix_spawn, which shares the memory and the thread pointer of its parent.
bool IsOfCLibrarySet(std::string_view function);

}  // namespace weft::api

#endif  // WEFT_LIB_API_FUNCTION_SETS_H_
