// SPDX-License-Identifier: Apache-2.0
// Checks whether the rules of a Trace match what a program offers. Finds misspelt event names, and
// misspelt fields in filters, before the program runs.
#ifndef WEFT_CLI_EVENT_CHECK_H_
#define WEFT_CLI_EVENT_CHECK_H_

#include <string>
#include <vector>

#include "cli/offered.h"
#include "lib/api/trace.h"

namespace weft::cli {

struct EventCheck {
  std::vector<std::string> problems;  // lines for people
  // A name without a wildcard that a program with tracepoints does not have; a field of a filter
  // that none of the events has that the program offers for it. Patterns, and programs without
  // tracepoints (which may start others), only give a line.
  bool is_wrong = false;
};

// `program`: as the lines call it.
EventCheck CheckEvents(const std::vector<api::Trace>& traces, const Offered& offered,
                       const std::string& program);

}  // namespace weft::cli

#endif  // WEFT_CLI_EVENT_CHECK_H_
