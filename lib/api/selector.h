// SPDX-License-Identifier: Apache-2.0
// Evaluates label selectors as Kubernetes does. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_API_SELECTOR_H_
#define WEFT_LIB_API_SELECTOR_H_

#include <map>
#include <string>
#include <string_view>

#include "lib/api/trace.h"

namespace weft::api {

// Does the selector match an object with these labels? An empty selector matches everything. NotIn
// also matches if there is no such label.
bool Matches(const LabelSelector& selector, const std::map<std::string, std::string>& labels);

// Does the selection include this container? No names mean all.
bool MatchesContainer(const PodSelection& pods, std::string_view container);

// Returns the selector for the API server's labelSelector parameter, "app=shop,tier in (a,b)"; not
// URL-encoded.
std::string ToQuery(const LabelSelector& selector);

}  // namespace weft::api

#endif  // WEFT_LIB_API_SELECTOR_H_
