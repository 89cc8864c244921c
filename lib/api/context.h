// SPDX-License-Identifier: Apache-2.0
// Names of contexts: what can be recorded beside every event. The one list of them.
// Thread-safety: pure functions.
#ifndef WEFT_LIB_API_CONTEXT_H_
#define WEFT_LIB_API_CONTEXT_H_

#include <string>
#include <string_view>

namespace weft::api {

// The channels of a Trace that have a context. A name that only one channel has is recorded there.
// Begins the name of a context that the program itself provides.
inline constexpr std::string_view kAppPrefix = "$app.";

struct ContextDomains {
  bool user = false;
  bool kernel = false;
  bool any() const { return user || kernel; }
};

// Names as in LTTng 2.13: plain ones ("vpid"), "perf:thread:COUNTER", "perf:cpu:COUNTER" (kernel),
// both also with "raw:rHEX:NAME" for COUNTER, and "$app.PROVIDER:NAME". Neither domain: there is no
// such context.
ContextDomains LookUpContext(std::string_view name);

// Returns "" if there is such a context, else what is wrong, with the nearest valid name.
std::string CheckContextName(std::string_view name);

// Returns all plain names, for `pattern`s and lists: "cgroup_ns|cpu_id|...".
std::string PlainContextNames(std::string_view separator);

}  // namespace weft::api

#endif  // WEFT_LIB_API_CONTEXT_H_
