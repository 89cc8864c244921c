// SPDX-License-Identifier: Apache-2.0
// Looking into objects.
#include "lib/kube/json.h"

namespace weft::kube {

const Json* At(const Json& object, JsonPath path) {
  const Json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const Json& object, JsonPath path) {
  const Json* at = At(object, path);
  return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
}

std::map<std::string, std::string> TextsAt(const Json& object, JsonPath path) {
  std::map<std::string, std::string> out;
  const Json* at = At(object, path);
  if (at == nullptr || !at->is_object()) return out;
  for (const auto& [key, value] : at->items()) {
    if (value.is_string()) out.emplace(key, value.get<std::string>());
  }
  return out;
}

}  // namespace weft::kube
