// SPDX-License-Identifier: Apache-2.0
// The fields of the events of a function, as its rule types them, and what its filter may name.
// Thread-safety: pure functions.
#ifndef WEFT_LIB_API_FUNCTION_FIELDS_H_
#define WEFT_LIB_API_FUNCTION_FIELDS_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/trace.h"

namespace weft::api {

inline constexpr FunctionMoment kMoments[] = {FunctionMoment::kEntry, FunctionMoment::kExit,
                                              FunctionMoment::kCall};
// As a Trace writes them, by enum FunctionMoment.
inline constexpr std::array<std::string_view, 3> kMomentNames = {"entry", "exit", "call"};

constexpr std::string_view NameOf(FunctionMoment moment) {
  return kMomentNames[static_cast<std::size_t>(moment)];
}

// The field that tells which arguments could not be read.
inline constexpr std::string_view kFaultsField = "faults";

struct FunctionField {
  std::string name;
  ValueType type;
  bool is_for_filters = false;  // it is not recorded
};

// Do events have a field that tells which arguments could not be read?
bool HasFaults(const FunctionRule& rule);
// Do exits need the arguments for the rule's filter?
bool FiltersExit(const FunctionRule& rule);

// Returns the fields of the events of that moment, in the order of their image. An argument that is
// called as a field of weft's ("ret", "duration", "faults", "depth", "unwound") gets a "_" behind
// its name.
std::vector<FunctionField> FieldsOf(const FunctionRule& rule, FunctionMoment moment);

// Returns why a filter that names this (NamesInFilter) cannot be used for events of that moment; ""
// if it can. `has_all`: does the rule have all arguments of the function?
std::string WhyNotNamed(const FunctionRule& rule, FunctionMoment moment,
                        const std::vector<std::string>& names, bool has_all = true);

// Returns why a filter that names this can be used for no function of the rule, as far as the rule
// alone tells: debug information may add arguments and a return value. "": it can.
std::string WhyNotNamed(const FunctionRule& rule, const std::vector<std::string>& names);

}  // namespace weft::api

#endif  // WEFT_LIB_API_FUNCTION_FIELDS_H_
