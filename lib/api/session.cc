// SPDX-License-Identifier: Apache-2.0
// TraceSessions from and to JSON.
#include "lib/api/session.h"

#include <algorithm>
#include <cstdio>

#include "lib/abi/control.h"
#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/reader.h"
#include "lib/api/session_schema.h"

namespace weft::api {
namespace {

constexpr std::string_view kSource = "TraceSession";

std::unexpected<Diagnostics> Fail(std::string message) {
  return std::unexpected(Diagnostics{{std::string(kSource), 0, 0, "", std::move(message)}});
}

bool Says(const Value& document, std::string_view field, std::string_view wanted) {
  const Value* value = document.Find(field);
  return value != nullptr && value->kind == Value::Kind::kString && value->text == wanted;
}

}  // namespace

std::string SessionName(std::string_view trace, std::string_view node, bool cluster_wide) {
  // No node's name has a slash: a Trace of that name may be in weft's own namespace, too.
  const std::string hashed = std::string(node) + (cluster_wide ? "/" : "");
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx",
                static_cast<unsigned long long>(weft_fnv1a64(hashed.data(), hashed.size())));
  return std::string(trace) + "-" + hash;
}

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

bool IsTrue(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* condition = FindCondition(conditions, type);
  return condition != nullptr && condition->status == ConditionStatus::kTrue;
}

std::expected<TraceSession, Diagnostics> ParseSession(std::string_view text,
                                                      const ParseOptions& options) {
  if (text.size() > limits::kDocumentBytes)
    return Fail("is larger than " + std::to_string(limits::kDocumentBytes) + " bytes");
  Documents documents = ReadJson(text);
  if (!documents) {
    documents.error().file = kSource;
    return std::unexpected(Diagnostics{std::move(documents.error())});
  }
  if (documents->size() != 1) return Fail("is not one object");
  const Value& document = documents->front();
  if (!Says(document, "apiVersion", kApiVersion) || !Says(document, "kind", kSessionKind))
    return Fail("is not " + std::string(kApiVersion) + " " + std::string(kSessionKind));

  Diagnostics diagnostics;
  Reader reader(kSource, options, diagnostics);
  TraceSession session;
  SessionSchema().Read(document, session, reader);
  if (!diagnostics.empty()) return std::unexpected(std::move(diagnostics));
  return session;
}

std::string WhyForeign(const TraceSession& session, std::string_view own_namespace) {
  if (session.spec.cluster_wide && session.metadata.name_space != own_namespace)
    return "spec.clusterWide is for ClusterTraces, whose sessions are in the namespace " +
           std::string(own_namespace);
  const std::string service = ".weft-relay." + std::string(own_namespace) + ".svc";
  for (const std::string& address : {session.spec.relay.control, session.spec.relay.data}) {
    const std::string_view host = std::string_view(address).substr(0, address.rfind(':'));
    const bool is_own = host.ends_with(service) && host.find('.') == host.size() - service.size() &&
                        host.size() > service.size();
    if (is_own) continue;
    std::string why = "spec.relay: " + address;
    why += " is no relay of this weft, whose hosts are *" + service;
    return why;
  }
  return "";
}

std::string ToJson(const TraceSession& session, int indent) {
  Value out = Value::Map();
  out.Add("apiVersion", Value::String(kApiVersion));
  out.Add("kind", Value::String(kSessionKind));
  for (Entry& entry : SessionSchema().Write(session).map) out.map.push_back(std::move(entry));
  return WriteJson(out, indent);
}

std::string StatusToJson(const SessionStatus& status) {
  return WriteJson(Value::Map().Add("status", SessionStatusSchema()->Write(status)), -1);
}

}  // namespace weft::api
