// SPDX-License-Identifier: Apache-2.0
// Filters in Traces: whoever reads a Trace refuses what would never match. A library of its own, since
// it needs the filter compiler. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_FILTERS_H_
#define WEFT_LIB_API_FILTERS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/parse.h"

namespace weft::api {

// What is wrong with a filter: what the compiler refuses, and a context that does not exist or cannot
// be read by a filter.
std::optional<FilterProblem> CheckFilter(std::string_view filter);

// The event's fields that a filter names, each once, in its order; none of one that is refused.
std::vector<std::string> FieldsOfFilter(std::string_view filter);

// Options with CheckFilter.
ParseOptions CheckingFilters();

}  // namespace weft::api

#endif  // WEFT_LIB_API_FILTERS_H_
