// SPDX-License-Identifier: Apache-2.0
// Converts text to document trees and back: the only place that knows yaml-cpp (yaml.cc) and
// nlohmann (json.cc). Internal to lib/api.
//
// Text is hostile: size, nesting, number of nodes and the expansion of aliases are bounded
// (limits.h). The libraries' exceptions end here. Thread-safety: functions may run at the same
// time.
#ifndef WEFT_LIB_API_DOCUMENT_H_
#define WEFT_LIB_API_DOCUMENT_H_

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/diagnostic.h"
#include "lib/api/value.h"

namespace weft::api {

// The documents, or a diagnostic without file and path that says where the text stops being YAML or
// JSON.
using Documents = std::expected<std::vector<Value>, Diagnostic>;

// Empty documents are left out. Plain scalars mean what they mean to kubectl (YAML 1.1: yes and on
// are booleans). Merge keys (<<) and tags other than the standard ones are refused.
Documents ReadYaml(std::string_view text);

// One document.
Documents ReadJson(std::string_view text);

// Block style, quoted where YAML 1.1 or 1.2 would take a string for something else; ends with a
// newline.
std::string WriteYaml(const Value& value);

// Writes with an indent of two, or on one line if indent < 0; without a newline at the end.
std::string WriteJson(const Value& value, int indent);

// Returns line and column of a byte of `text`.
Mark MarkAt(std::string_view text, std::size_t offset);

}  // namespace weft::api

#endif  // WEFT_LIB_API_DOCUMENT_H_
