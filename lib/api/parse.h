// SPDX-License-Identifier: Apache-2.0
// Parses Traces. The command line reads them from files, the agent from definitions on disk, and
// the controller from objects of the API server. Thread-safety: functions may run at the same time;
// calls share nothing.
#ifndef WEFT_LIB_API_PARSE_H_
#define WEFT_LIB_API_PARSE_H_

#include <cstddef>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/diagnostic.h"
#include "lib/api/trace.h"

namespace weft::api {

// A mistake in a filter, and its place.
struct FilterProblem {
  std::size_t offset = 0;  // bytes
  std::string message;
  std::string place;    // for people who do not see the file: "column 9"
  std::string excerpt;  // as Diagnostic's
};

struct ParseOptions {
  // false where an object comes from an API server, which may know newer fields than we do.
  bool refuse_unknown_fields = true;
  // It is called for every filter, so that the filters' errors come together with all others and
  // point into the file. The program that links this library passes lib/event's compiler here;
  // without it, only a filter's outer form is checked.
  std::function<std::optional<FilterProblem>(std::string_view filter)> check_filter;
  // Likewise: NamesInFilter of lib/api/filters.h. Without it, what a filter names is not checked.
  std::function<std::vector<std::string>(std::string_view filter)> names_in_filter;
};

using Traces = std::expected<std::vector<Trace>, Diagnostics>;

// Returns all Traces in `text`: YAML (one or several documents) or JSON (one object). `file` is
// only for the diagnostics. Never returns an empty list: a text without a Trace is an error. All
// that is wrong is reported, not only the first; a syntax error ends the reading.
Traces ParseTraces(std::string_view file, std::string_view text, const ParseOptions& options = {});

// Parse ClusterTraces.
Traces ParseClusterTraces(std::string_view file, std::string_view text,
                          const ParseOptions& options = {});

// ParseTraces for a file; "-" is standard input.
Traces LoadTraces(const std::string& path, const ParseOptions& options = {});

// Parses a label selector as an object in JSON. `source` is for the diagnostics.
std::expected<LabelSelector, Diagnostics> ParseLabelSelector(std::string_view source,
                                                             std::string_view text);

// Runs these checks on a Trace that a program built. Returns an empty list if it is valid.
Diagnostics Validate(const Trace& trace, const ParseOptions& options = {});

}  // namespace weft::api

#endif  // WEFT_LIB_API_PARSE_H_
