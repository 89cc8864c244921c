// SPDX-License-Identifier: Apache-2.0
// For tests: executes a filter program as lib/abi/filter.h specifies, one instruction after the
// other, without linking it: it looks up fields by name each time. The bytes must have been
// validated.
#ifndef WEFT_LIB_EVENT_FILTER_REFERENCE_H_
#define WEFT_LIB_EVENT_FILTER_REFERENCE_H_

#include <optional>
#include <variant>
#include <vector>

#include "lib/event/filter_test_event.h"

namespace weft::testing {

struct ReferenceText {
  std::string bytes;
  bool is_pattern = false;
};
using ReferenceValue = std::variant<int64_t, double, ReferenceText>;

// nullopt: there is no such symbol now.
using ReferenceSymbols = std::vector<std::optional<ReferenceValue>>;

// Returns the filter's result; `symbols` are the values of the program's symbols, by number.
[[nodiscard]] bool RunReference(const std::vector<uint8_t>& program,
                                const ReferenceSymbols& symbols);

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_REFERENCE_H_
