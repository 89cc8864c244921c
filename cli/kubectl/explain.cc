// SPDX-License-Identifier: Apache-2.0
// See explain.h.
#include "cli/kubectl/explain.h"

#include <cstdio>
#include <regex>

#include "cli/exit_status.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {

std::string Explain(const Error& error) {
  // traces.weft.dev "x" is forbidden: User "U" cannot get resource "traces" in API group "weft.dev"
  // in the namespace "shop"
  static const std::regex& forbidden = *new std::regex(
      R"re(User "([^"]{1,300})" cannot (\w{1,30}) resource "([^"]{1,100})" in API group )re"
      R"re("([^"]{0,253})"(?: in the namespace "([^"]{1,63})")?)re");
  const std::string text = error.message.substr(0, 4096);
  std::smatch found;
  if (error.code == ErrorCode::kPermission && std::regex_search(text, found, forbidden)) {
    const std::string resource =
        found[3].str() + (found[4].length() > 0 ? "." : "") + found[4].str();
    const std::string where =
        found[5].matched ? "in the namespace " + found[5].str() : "in the whole cluster";
    const std::string role = found[5].matched ? "a Role" : "a ClusterRole";
    const std::string other =
        resource == "services/proxy" ? "; if weft is in another namespace: --weft-namespace" : "";
    return "missing right: " + found[1].str() + " may not " + found[2].str() + " " + resource +
           " " + where + "; an administrator can grant it with " + role + " that has the verb " +
           found[2].str() + " for " + resource + " (docs/kubectl-weft.md)" + other;
  }
  if (error.code == ErrorCode::kPermission && text.contains("Unauthorized"))
    return "the API server does not accept these credentials (401): log in again, or choose "
           "another "
           "context with --context";
  return error.message;
}

int Complain(const Error& error) {
  std::fprintf(stderr, "kubectl weft: %s\n", Printable(Explain(error)).c_str());
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kPermission:
    case ErrorCode::kUnsupported:
    case ErrorCode::kConflict:
      return cli::kExitBadInput;
    case ErrorCode::kCorrupt:
    case ErrorCode::kLimit:
    case ErrorCode::kIo:
    case ErrorCode::kClosed:
    case ErrorCode::kTimeout:
      return cli::kExitTracing;
  }
  return cli::kExitTracing;
}

}  // namespace weft::kubectl
