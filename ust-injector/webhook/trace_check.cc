// SPDX-License-Identifier: Apache-2.0
// From a Trace's problems to the answer of an API server.
#include "ust-injector/webhook/trace_check.h"

#include <string>
#include <utility>

#include "lib/api/filters.h"
#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/kube/json.h"

namespace weft::webhook {
namespace {

bool IsClusterTrace(const AdmissionRequest& request) {
  return request.group == api::kGroup && request.kind == api::kClusterTraceKind;
}

// Printable, and of bounded length.
std::string Safe(const std::string& text) {
  return api::Diagnostic{.message = text}.ToString().substr(0, api::limits::kMessage);
}

// What a person writes. The rest is the API server's own, and a name may be still to come
// (generateName).
std::string TextOf(const AdmissionRequest& request, const std::string& name) {
  const Json object = {{"apiVersion", api::kApiVersion},
                       {"kind", request.kind},
                       {"metadata", {{"name", name.empty() ? "generated" : name}}}};
  std::string text = object.dump();
  // Without a copy of the spec, which may be large.
  if (const Json* spec = kube::At(request.object, {"spec"}); spec != nullptr) {
    text.pop_back();
    text += ",\"spec\":" + spec->dump() + "}";
  }
  return text;
}

}  // namespace

bool IsTrace(const AdmissionRequest& request) {
  return IsClusterTrace(request) ||
         (request.group == api::kGroup && request.kind == api::kTraceKind);
}

Json WhyRefused(const AdmissionRequest& request) {
  api::ParseOptions options = api::CheckingFilters();
  // The API server has removed those that its definition does not know, or has refused them.
  options.refuse_unknown_fields = false;
  const std::string name = kube::TextAt(request.object, {"metadata", "name"});
  const std::string text = TextOf(request, name);
  const auto read = IsClusterTrace(request) ? api::ParseClusterTraces("", text, options)
                                            : api::ParseTraces("", text, options);
  if (read) return nullptr;

  std::string message;
  Json causes = Json::array();
  for (const api::Diagnostic& problem : read.error()) {
    const std::string field = Safe(problem.path.empty() ? "spec" : problem.path);
    const std::string what = Safe(problem.message);
    message.append(message.empty() ? "" : "; ").append(field).append(": ").append(what);
    causes.push_back({{"reason", "FieldValueInvalid"}, {"field", field}, {"message", what}});
  }
  return {{"status", "Failure"},
          {"reason", "Invalid"},
          {"code", 422},
          {"message", std::move(message)},
          {"details",
           {{"group", request.group},
            {"kind", request.kind},
            {"name", Safe(name)},
            {"causes", std::move(causes)}}}};
}

Json WhyOneTooMany(std::size_t others, std::size_t most) {
  const std::string why = api::CheckTraceCount(others, most);
  if (why.empty()) return nullptr;
  return {{"status", "Failure"}, {"reason", "Forbidden"}, {"code", 403}, {"message", why}};
}

}  // namespace weft::webhook
