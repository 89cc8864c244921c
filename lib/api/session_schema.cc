// SPDX-License-Identifier: Apache-2.0
// The table of a TraceSession's spec; its status is in status_schema.cc. What is recorded is a
// Trace's spec, unchanged, so that a node compiles in a cluster what local mode compiles from a
// file.
#include "lib/api/session_schema.h"

#include <array>

#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/scalar_types.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

template <typename T>
TypePtr<T> Object(std::string name, std::vector<Field<T>> fields, std::vector<Rule<T>> rules = {}) {
  return std::make_shared<ObjectType<T>>(std::move(name), std::move(fields), std::move(rules));
}

constexpr std::array<std::string_view, 2> kStates = {"Active", "Draining"};

// "host:port"; an IPv6 address stands in brackets. A resolver says the rest.
std::string CheckAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return "must be host:port";
  const std::string_view port = text.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string_view::npos)
    return "must end with a port's number";
  return "";
}

TypePtr<std::string> Address() {
  return String({.type_name = "host:port",
                 .max = limits::kAddress,
                 .check = CheckAddress,
                 .pattern = "^.+:[0-9]{1,5}$"});
}

TypePtr<RelayAddress> RelaySchema() {
  using T = RelayAddress;
  return Object<T>(
      "RelayAddress",
      {MakeField("name", &T::name,
                 String({.max = limits::kDnsSubdomain, .check = CheckDnsSubdomain}),
                 "The relay, as in the Trace's status.", kRequired),
       MakeField("control", &T::control, Address(), "Where it takes control connections.",
                 kRequired),
       MakeField("data", &T::data, Address(), "Where it takes data connections.", kRequired)});
}

Rule<SessionSpec> Immutable(const std::string& field) {
  return {{"self." + field + " == oldSelf." + field, "cannot be changed", field}, nullptr};
}

}  // namespace

TypePtr<SessionSpec> SessionSpecSchema() {
  using T = SessionSpec;
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceSessionSpec",
      {MakeField("nodeName", &T::node_name,
                 String({.max = limits::kDnsSubdomain, .check = CheckDnsSubdomain}),
                 "The node that this session is for.", kRequired),
       MakeField("traceName", &T::trace_name,
                 String({.max = limits::kTraceName, .check = CheckTraceName}),
                 "The Trace that this session belongs to.", kRequired),
       MakeField("traceUid", &T::trace_uid,
                 String({.type_name = "UUID",
                         .max = limits::kUuid,
                         .check = CheckUuid,
                         .pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}),
                 "The Trace's uid, which is the UUID of the CTF trace too.", kRequired),
       MakeField("traceGeneration", &T::trace_generation, Int<std::int64_t>(0, INT64_MAX),
                 "Generation of the Trace that record was taken from.", kRequired),
       MakeField("state", &T::state, Enum<SessionState>(kStates),
                 "Active: record. Draining: record nothing new, deliver what there is.", kRequired),
       MakeField("relay", &T::relay, RelaySchema(), "Where events are sent.", kRequired),
       MakeField(
           "deadline", &T::deadline,
           String({.type_name = "time", .max = 64, .check = CheckTime, .format = "date-time"}),
           "When to stop without being told. Absent: when told."),
       MakeField("clusterWide", &T::cluster_wide, Bool(),
                 "Of a ClusterTrace: record the kernel of the whole node, whoever it is about. In "
                 "weft's own namespace only."),
       MakeField("record", &T::record, SpecSchema(), "The Trace's spec.", kRequired)},
      {Immutable("nodeName"), Immutable("traceName"), Immutable("traceUid")}));
  return schema;
}

const Type<TraceSession>& SessionSchema() {
  using T = TraceSession;
  // As in TraceSchema(): what is referred to never ends.
  const auto metadata = TypePtr<Metadata>(std::shared_ptr<const void>(), &MetadataSchema());
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceSession",
      {IgnoredField<T>("apiVersion", /*hidden=*/false), IgnoredField<T>("kind", /*hidden=*/false),
       MakeField("metadata", &T::metadata, metadata, "Kubernetes' metadata.", kRequired),
       MakeField("spec", &T::spec, SessionSpecSchema(), "What the node shall do.", kRequired),
       MakeField("status", &T::status, SessionStatusSchema(), "What the node does.")}));
  return *schema;
}

}  // namespace weft::api
