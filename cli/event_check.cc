// SPDX-License-Identifier: Apache-2.0
// See event_check.h. Pure.
#include "cli/event_check.h"

#include <algorithm>

#include "lib/api/diagnostic.h"
#include "lib/api/nearest.h"
#include "lib/event/match.h"

namespace weft::cli {
namespace {

// Of the library itself, in every process: no program offers them in its file.
constexpr std::string_view kOwnProviders[] = {
    "lttng_ust_tracef:", "lttng_ust_tracelog:", "lttng_ust_statedump:", "weft_"};

bool IsOwn(const std::string& name) {
  return std::ranges::any_of(kOwnProviders,
                             [&](std::string_view own) { return name.starts_with(own); });
}

}  // namespace

EventCheck CheckEvents(const std::vector<api::Trace>& traces, const Offered& offered,
                       const std::string& program) {
  EventCheck check;
  if (std::ranges::none_of(traces, [](const api::Trace& t) { return t.spec.RecordsUser(); }))
    return check;
  if (offered.is_static) {
    check.problems.push_back(program +
                             " is statically linked: libweft.so cannot be loaded into it, only "
                             "programs that it starts are recorded");
    return check;
  }
  const std::vector<std::string> names = offered.Names();
  if (names.empty()) {
    check.problems.push_back(
        program +
        " offers no tracepoints in its files; what it loads later and programs "
        "that it starts are recorded");
    return check;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const api::Trace& trace : traces) {
    for (const api::EventRule& rule : trace.spec.user.events) {
      if (IsOwn(rule.name)) continue;
      if (std::ranges::any_of(names, [&](const std::string& name) {
            return weft_glob_match_str(rule.name.c_str(), name.c_str());
          }))
        continue;
      const bool literal = rule.name.find('*') == std::string::npos;
      std::string line = "event " + api::Quote(rule.name) + ": " + program + " offers ";
      line += literal ? "no such tracepoint" : "no tracepoint that it matches";
      const std::string_view nearest = api::Nearest(rule.name, views);
      if (!nearest.empty())
        line += ", did you mean \"" + std::string(nearest) + "\"?";
      else
        line += " (see: weft list " + program + ")";
      check.problems.push_back(std::move(line));
      check.wrong_name |= literal;
    }
  }
  return check;
}

}  // namespace weft::cli
