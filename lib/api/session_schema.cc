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

TypePtr<RelayEndpoints> RelaySchema() {
  using T = RelayEndpoints;
  return Object<T>(
      "RelayAddress",
      {MakeField("name", &T::name,
                 String({.max = limits::kDnsSubdomain, .check = CheckDnsSubdomain}),
                 "Name of the relay, as in the Trace's status.", kRequired),
       MakeField("control", &T::control, Address(), "Address for control connections.", kRequired),
       MakeField("data", &T::data, Address(), "Address for data connections.", kRequired)});
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
                 "Node of this session.", kRequired),
       MakeField("traceName", &T::trace_name,
                 String({.max = limits::kTraceName, .check = CheckTraceName}),
                 "Trace of this session.", kRequired),
       MakeField("traceUid", &T::trace_uid,
                 String({.type_name = "UUID",
                         .max = limits::kUuid,
                         .check = CheckUuid,
                         .pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}),
                 "uid of the Trace, which is a part of the name of its folder at the relay.",
                 kRequired),
       MakeField("traceGeneration", &T::trace_generation, Int<std::int64_t>(0, INT64_MAX),
                 "Generation of the Trace from which record was copied.", kRequired),
       MakeField(
           "state", &T::state, Enum<SessionState>(kStates),
           "Active: record events. Draining: record no new events, deliver the recorded ones.",
           kRequired),
       MakeField("relay", &T::relay, RelaySchema(), "Relay that gets the events.", kRequired),
       MakeField(
           "deadline", &T::deadline,
           String({.type_name = "time", .max = 64, .check = CheckTime, .format = "date-time"}),
           "Time at which the agent stops by itself. Absent: it stops when state changes."),
       MakeField("clusterWide", &T::cluster_wide, Bool(),
                 "For a ClusterTrace: record kernel events of all tasks of the node. Allowed in "
                 "weft's own namespace only."),
       MakeField("record", &T::record, SpecSchema(), "Copy of the Trace's spec.", kRequired)},
      {Immutable("nodeName"), Immutable("traceName"), Immutable("traceUid")}));
  return schema;
}

const Type<TraceSession>& SessionSchema() {
  using T = TraceSession;
  // The schemas that this refers to are never destroyed, as in TraceSchema().
  const auto metadata = TypePtr<Metadata>(std::shared_ptr<const void>(), &MetadataSchema());
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceSession",
      {IgnoredField<T>("apiVersion", /*hidden=*/false), IgnoredField<T>("kind", /*hidden=*/false),
       MakeField("metadata", &T::metadata, metadata, "Kubernetes' metadata.", kRequired),
       MakeField("spec", &T::spec, SessionSpecSchema(), "Desired state.", kRequired),
       MakeField("status", &T::status, SessionStatusSchema(), "Observed state.")}));
  return *schema;
}

}  // namespace weft::api
