// SPDX-License-Identifier: Apache-2.0
// Checks the filters of Traces, so that every reader refuses a filter that could never match. A
// library of its own because it needs the filter compiler. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_FILTERS_H_
#define WEFT_LIB_API_FILTERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/parse.h"
#include "lib/event/description.h"
#include "lib/event/filter.h"

namespace weft::api {

// Returns what is wrong with a filter: an error of the compiler, or a context that does not exist
// or that filters cannot read.
std::optional<FilterProblem> CheckFilter(std::string_view filter);

// Returns the event's fields that a filter names, each once, in its order; none for a filter that
// is refused.
std::vector<std::string> FieldsOfFilter(std::string_view filter);

// Returns all that a filter names, likewise: "size", "$ctx.vpid", "$app.shop:user".
std::vector<std::string> NamesInFilter(std::string_view filter);

// Returns why the rule's filter cannot be used for an event of a function: it names what the event
// does not have; "": it can.
std::string WhyNotFiltered(const FunctionRule& rule, FunctionMoment moment);

// Whether a filter can be used for an event.
enum class FilterFit : std::uint8_t {
  kFits,
  kAbsent,  // a field or context that it names is not there
  kTypes,   // one is of another type: a string where the filter takes a number
};
// `program`: made by CompileFilter; `description`: the event's (lib/event/description.h). kCorrupt:
// it is no program; kUnsupported: this version does not take it.
Result<FilterFit> FitFilter(const std::vector<std::uint8_t>& program,
                            const std::vector<std::uint8_t>& description,
                            const weft_filter_contexts& contexts);

// A filter that is compiled once, to be tried with many user-space events.
class EventFilter {
 public:
  explicit EventFilter(std::string_view text);

  // As FieldsOfFilter.
  [[nodiscard]] const std::vector<std::string>& fields() const { return fields_; }
  // Return kFits if that cannot be decided. `description`: lib/event/description.h.
  [[nodiscard]] FilterFit Fit(const EventDescription& event) const;
  [[nodiscard]] FilterFit Fit(const std::vector<std::uint8_t>& description) const;

 private:
  std::vector<std::string> fields_;
  std::vector<std::uint8_t> program_;  // empty: the filter is refused
};

// Options with CheckFilter and NamesInFilter.
ParseOptions CheckingFilters();

}  // namespace weft::api

#endif  // WEFT_LIB_API_FILTERS_H_
