// SPDX-License-Identifier: Apache-2.0
// The events of one hooked function, as a Trace's rule types them: their descriptions, and where
// the values are at the call (System V ABI for x86-64, 3.2.3). Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_EVENT_LAYOUT_H_
#define WEFT_NODE_AGENT_HOOKS_EVENT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/api/function_fields.h"
#include "lib/api/trace.h"
#include "lib/base/result.h"

namespace weft::hooks {

struct EventLayout {
  std::vector<weft_hook_value> values;
  std::vector<weft_hook_detail> details;  // of each value; empty: none has one
  weft_hook_value result{};
  uint32_t flags = 0;  // enum weft_hook_flag
};

// Returns where the values of a rule are; `is_go`: of a function of Go. kUnsupported: too many
// arguments, a path with names of members, or one from an argument that there is not; the message
// says which, and what to do.
Result<EventLayout> LayOut(const api::FunctionRule& rule, bool is_go = false);

using Moment = api::FunctionMoment;
using api::kMoments;

// Returns the name of a function's event.
std::string EventName(const std::string& function, Moment moment);

// Returns the description of an event (lib/abi/event.h) whose image is as lib/abi/hooks.h says, and
// fills in what depends on it in `event`. kInvalid: the names make no description.
Result<std::vector<uint8_t>> Describe(const api::FunctionRule& rule, const std::string& function,
                                      Moment moment, weft_event& event);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_EVENT_LAYOUT_H_
