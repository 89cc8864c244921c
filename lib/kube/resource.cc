// SPDX-License-Identifier: Apache-2.0
// Paths of the Kubernetes API.
#include "lib/kube/resource.h"

namespace weft::kube {

std::string Encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kPlain.contains(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string Target(const Address& address, const Query& query) {
  const Resource& resource = address.resource;
  std::string out = resource.group.empty() ? "/api/" : "/apis/" + std::string(resource.group) + "/";
  out += resource.version;
  if (!address.name_space.empty()) out += "/namespaces/" + Encode(address.name_space);
  out += "/" + std::string(resource.plural);
  if (!address.name.empty()) out += "/" + Encode(address.name);
  if (!address.subresource.empty()) out += "/" + address.subresource;
  char separator = '?';
  for (const auto& [key, value] : query) {
    out += separator + std::string(key) + "=" + Encode(value);
    separator = '&';
  }
  return out;
}

}  // namespace weft::kube
