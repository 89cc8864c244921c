// SPDX-License-Identifier: Apache-2.0
// Writes Traces as text, in the form that parse.h reads. Fields that have their default are left
// out. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_WRITE_H_
#define WEFT_LIB_API_WRITE_H_

#include <string>
#include <vector>

#include "lib/api/trace.h"

namespace weft::api {

// One document.
std::string ToYaml(const Trace& trace);
// Writes several, with --- between them.
std::string ToYaml(const std::vector<Trace>& traces);

// Writes with an indent of `indent`, or on one line if it is negative.
std::string ToJson(const Trace& trace, int indent = -1);

// Writes the status alone, {"status": {...}}: the body of a merge patch on the status subresource.
std::string StatusToJson(const TraceStatus& status);

}  // namespace weft::api

#endif  // WEFT_LIB_API_WRITE_H_
