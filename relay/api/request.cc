// SPDX-License-Identifier: Apache-2.0
// See request.h.
#include "relay/api/request.h"

#include <algorithm>
#include <charconv>

#include "lib/base/ascii.h"
#include "lib/base/uuid.h"
#include "relay/api/limits.h"

namespace weft::relay_api {
namespace {

// RFC 1123, as Kubernetes has it: a label, or a subdomain where dots are allowed.
bool IsDnsName(std::string_view name, size_t most, bool dots) {
  return !name.empty() && name.size() <= most && name.front() != '-' && name.back() != '-' &&
         name.front() != '.' && name.back() != '.' && std::ranges::all_of(name, [dots](char c) {
           return IsLower(c) || IsDigit(c) || c == '-' || (dots && c == '.');
         });
}

// Takes what stands before the next '/', or all.
std::string_view TakePart(std::string_view& rest) {
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view part = rest.substr(0, slash);
  rest.remove_prefix(std::min(slash + 1, rest.size()));
  return part;
}

bool IsPath(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes || path.back() == '/') return false;
  while (!path.empty()) {
    if (!IsStoredName(TakePart(path))) return false;
  }
  return true;
}

std::unexpected<Error> NoSuchTarget() {
  return Fail(
      ErrorCode::kNotFound,
      "there is no such path: see /v1/namespaces/NAMESPACE/traces, or docs/openapi/relay.yaml");
}

bool IsBase64Url(char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '_'; }

bool IsSecret(std::string_view text) {
  return text.size() >= kMinSecretBytes && text.size() <= kMaxSecretBytes &&
         std::ranges::all_of(text, IsBase64Url);
}

// RFC 6750's b64token.
bool IsBearerToken(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTokenBytes && std::ranges::all_of(text, [](char c) {
    return IsBase64Url(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '=';
  });
}

// Takes the next member of a query.
std::string_view TakeMember(std::string_view& query) {
  const std::string_view member = query.substr(0, query.find('&'));
  query.remove_prefix(std::min(member.size() + 1, query.size()));
  return member;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool IsStoredName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) { return IsBase64Url(c) || c == '.'; });
}

Result<Route> ParseRoute(std::string_view path) {
  constexpr std::string_view kStart = "/v1/namespaces/";
  constexpr std::string_view kTickets = "/v1/tickets/";
  if (path.starts_with(kTickets)) {
    path.remove_prefix(kTickets.size());
    if (!IsDnsName(path, 63, false)) return NoSuchTarget();
    return Route{.verb = Verb::kGetTicket, .kubernetes_namespace = std::string(path)};
  }
  if (!path.starts_with(kStart)) return NoSuchTarget();
  path.remove_prefix(kStart.size());
  Route route;
  route.kubernetes_namespace = TakePart(path);
  if (!IsDnsName(route.kubernetes_namespace, 63, false)) return NoSuchTarget();
  if (path == "traces") return route;
  if (TakePart(path) != "traces") return NoSuchTarget();
  route.trace = TakePart(path);
  const auto uid = ParseUuid(TakePart(path));
  if (!IsDnsName(route.trace, 253, true) || !uid) return NoSuchTarget();
  route.uid = FormatUuid(*uid);
  route.verb = Verb::kListFiles;
  if (path == "files") return route;
  if (path == "archive.tar" || path == "archive.tar.zst") {
    route.verb = Verb::kGetArchive;
    route.is_compressed = path.ends_with(".zst");
    return route;
  }
  if (path == "rates") {
    route.verb = Verb::kGetRates;
    return route;
  }
  if (path == "parts") {
    route.verb = Verb::kGetParts;
    return route;
  }
  if (TakePart(path) != "files" || !IsPath(path)) return NoSuchTarget();
  route.verb = Verb::kGetFile;
  route.path = path;
  return route;
}

Result<Token> ParseToken(std::string_view weft_token, std::string_view authorization) {
  std::string_view text = weft_token;
  constexpr std::string_view kBearer = "Bearer ";
  if (text.empty() && authorization.starts_with(kBearer)) {
    text = authorization.substr(kBearer.size());
  }
  if (text.empty()) {
    return Fail(ErrorCode::kPermission,
                "no token: send NAMESPACE.VIEW.SECRET of a TraceView in the header X-Weft-Token");
  }
  // The first part of a token of Kubernetes has capital letters: no namespace has.
  const size_t first = text.find('.');
  const size_t last = text.rfind('.');
  if (first != last && IsDnsName(text.substr(0, first), 63, false)) {
    Token token{.view_namespace = std::string(text.substr(0, first)),
                .view_name = std::string(text.substr(first + 1, last - first - 1)),
                .secret = std::string(text.substr(last + 1))};
    if (IsDnsName(token.view_name, 253, true) && IsSecret(token.secret)) return token;
  } else if (IsBearerToken(text)) {
    return Token{.view_namespace = "", .view_name = "", .secret = std::string(text)};
  }
  return Fail(ErrorCode::kPermission,
              "not a token: it is NAMESPACE.VIEW.SECRET of a TraceView, or a token of Kubernetes");
}

Result<Range> ParseRange(std::string_view text) {
  constexpr std::string_view kUnit = "bytes=";
  const auto fail = [] { return Fail(ErrorCode::kInvalid, "Range must be bytes=FIRST-[LAST]"); };
  if (!text.starts_with(kUnit)) return fail();
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return fail();
  const auto first = ParseNumber(text.substr(0, dash));
  const auto last = ParseNumber(text.substr(dash + 1));
  if (!first || (!last && dash + 1 < text.size()) || (last && *last < *first)) return fail();
  return Range{.first = *first, .last = last};
}

Result<std::vector<Part>> PartsIn(std::string_view query) {
  constexpr std::string_view kName = "part=";
  std::vector<Part> parts;
  while (!query.empty()) {
    std::string_view member = TakeMember(query);
    if (!member.starts_with(kName)) continue;
    member.remove_prefix(kName.size());
    const size_t colon = std::min(member.find(':'), member.size());
    const size_t second = std::min(member.find(':', colon + 1), member.size());
    const auto first = ParseNumber(member.substr(0, colon));
    const auto size = ParseNumber(
        member.substr(std::min(colon + 1, second), second - std::min(colon + 1, second)));
    const std::string_view path = member.substr(std::min(second + 1, member.size()));
    if (!first || !size || !IsPath(path)) {
      return Fail(ErrorCode::kInvalid, "part must be FIRST:SIZE:PATH");
    }
    if (parts.size() == kMaxParts) {
      return Fail(ErrorCode::kInvalid,
                  "more than " + std::to_string(kMaxParts) + " parts in one request");
    }
    parts.push_back({.first = *first, .size = *size, .path = std::string(path)});
  }
  if (parts.empty()) return Fail(ErrorCode::kInvalid, "no part: name some as part=FIRST:SIZE:PATH");
  return parts;
}

Result<std::optional<uint64_t>> NumberIn(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view member = TakeMember(query);
    const size_t equals = std::min(member.find('='), member.size());
    if (member.substr(0, equals) != name) continue;
    const auto number = ParseNumber(member.substr(std::min(equals + 1, member.size())));
    if (!number) return Fail(ErrorCode::kInvalid, std::string(name) + " must be a whole number");
    return number;
  }
  return std::nullopt;
}

Result<std::vector<std::string>> PodsIn(std::string_view query) {
  constexpr std::string_view kName = "pod=";
  std::vector<std::string> pods;
  while (!query.empty()) {
    std::string_view member = TakeMember(query);
    if (!member.starts_with(kName)) continue;
    member.remove_prefix(kName.size());
    if (!IsStoredName(member)) return Fail(ErrorCode::kInvalid, "pod must be the name of a pod");
    pods.emplace_back(member);
  }
  return pods;
}

}  // namespace weft::relay_api
