// SPDX-License-Identifier: Apache-2.0
// Checks whether a kernel event has what a filter reads, and names what is missing. Thread-safety:
// functions of immutable values.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_FILTER_FIT_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_FILTER_FIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::agent {

struct FilterFit {
  std::string lacks;  // `has no field "a"`; "": the filter fits
  std::string hint;   // `, did you mean "b"?`, or what there is; may be empty
};

// Returns the names of the contexts that a program asks for.
std::vector<std::string> ContextsOf(const std::vector<uint8_t>& program);

// `program`: made by CompileFilter; an empty one fits everything. `description`: that of an event,
// as weft.ko gets it (node-agent/kernel/resolve.h). kCorrupt: it is no program; kUnsupported: the
// kernel does not take it.
Result<FilterFit> FitFilter(const std::vector<uint8_t>& program,
                            const std::vector<uint8_t>& description);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_FILTER_FIT_H_
