// SPDX-License-Identifier: Apache-2.0
// Reads members of API objects without trusting their shape. Thread-safety: pure functions.
#ifndef WEFT_LIB_KUBE_JSON_H_
#define WEFT_LIB_KUBE_JSON_H_

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace weft::kube {

using Json = nlohmann::json;
using JsonPath = std::initializer_list<std::string_view>;

// The value at a path of members, nullptr where there is none.
const Json* At(const Json& object, JsonPath path);

// A string, "" where there is none.
std::string TextAt(const Json& object, JsonPath path);

// All members of an object that are strings.
std::map<std::string, std::string> TextsAt(const Json& object, JsonPath path);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_JSON_H_
