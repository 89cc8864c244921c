// SPDX-License-Identifier: Apache-2.0
// Any text as target, token and range: no crash, and what is taken is what the archive may have
// stored. A seed's lines are path, X-Weft-Token, Authorization, Range, query.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lib/store/chunk_name.h"
#include "relay/api/limits.h"
#include "relay/api/request.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckRoute(std::string_view path) {
  const auto route = weft::relay_api::ParseRoute(path);
  if (!route) return;
  for (const std::string* name : {&route->kubernetes_namespace, &route->trace, &route->uid}) {
    Require(name->empty() || weft::relay_api::IsStoredName(*name));
  }
  Require(!route->kubernetes_namespace.empty());
  std::string_view rest = route->path;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    Require(weft::relay_api::IsStoredName(name));
    Require(weft::store::FormatChunkName(weft::store::ParseChunkName(name)) == name);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
}

void CheckToken(std::string_view token, std::string_view authorization) {
  const auto parsed = weft::relay_api::ParseToken(token, authorization);
  if (!parsed) {
    Require(parsed.error().message.find('\n') == std::string::npos);
    return;
  }
  Require(!parsed->secret.empty() && parsed->secret.size() <= weft::relay_api::kMaxTokenBytes);
  if (!parsed->is_view()) return;
  Require(parsed->secret.size() >= weft::relay_api::kMinSecretBytes);
  Require(parsed->view_namespace + "." + parsed->view_name + "." + parsed->secret ==
          (token.empty() ? authorization.substr(7) : token));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 5> lines;
  for (std::string_view& line : lines) {
    const std::size_t end = rest.find('\n');
    line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  CheckRoute(lines[0]);
  CheckToken(lines[1], lines[2]);
  if (const auto range = weft::relay_api::ParseRange(lines[3])) {
    Require(!range->last || range->first <= *range->last);
  }
  (void)weft::relay_api::NumberIn(lines[4], "since");
  if (const auto pods = weft::relay_api::PodsIn(lines[4])) {
    for (const std::string& pod : *pods) Require(weft::relay_api::IsStoredName(pod));
  }
  if (const auto parts = weft::relay_api::PartsIn(lines[4])) {
    Require(!parts->empty());
    for (const auto& part : *parts) {
      Require(weft::relay_api::IsStoredName(part.path.substr(0, part.path.find('/'))));
    }
  }
  return 0;
}
