// SPDX-License-Identifier: Apache-2.0
// The CRDs of Trace, ClusterTrace and TraceSession: structural schemas, with CEL rules where
// openAPI says too little.
#include "lib/api/crd.h"

#include <initializer_list>
#include <utility>

#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/session_schema.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

Value MapOf(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value out = Value::Map();
  for (const auto& [key, value] : members) out.Add(key, value);
  return out;
}

Value Text(std::string_view text) { return Value::String(text); }

Value Column(std::string_view name, std::string_view type, std::string_view path,
             std::string_view description) {
  return MapOf({{"name", Text(name)},
                {"type", Text(type)},
                {"jsonPath", Text(path)},
                {"description", Text(description)}});
}

Value TraceColumns() {
  return Value::List(
      {Column("Phase", "string", ".status.phase", "Phase of the Trace."),
       Column("Pods", "integer", ".status.pods.traced", "Number of traced pods."),
       Column("Events", "integer", ".status.events.delivered",
              "Number of events that can be read."),
       Column("Lost", "integer", ".status.events.missing", "Number of discarded and lost events."),
       Column("Relay", "string", ".status.relay", "The relay that stores the Trace."),
       Column("Age", "date", ".metadata.creationTimestamp", "Time since it was made.")});
}

Value ClusterTraceColumns() {
  Value columns = TraceColumns();
  std::erase_if(columns.list, [](const Value& c) { return c.Find("name")->text == "Pods"; });
  return columns;
}

Value SessionColumns() {
  return Value::List(
      {Column("Trace", "string", ".spec.traceName", "Trace of the session."),
       Column("Node", "string", ".spec.nodeName", "Node of the session."),
       Column("State", "string", ".spec.state", "State that the node shall reach."),
       Column("Phase", "string", ".status.phase", "Phase of the session on its node."),
       Column("Pods", "integer", ".status.pods.traced", "Pods of the node that are traced."),
       Column("Age", "date", ".metadata.creationTimestamp", "Time since it was made.")});
}

struct Resource {
  std::string_view kind, plural, singular;
  std::size_t name_limit = 0;
  std::string_view source;  // the file with its table
  std::string_view description, spec_description, status_description;
  std::string_view scope = "Namespaced";
};

// Returns "type", then the description, then the rest of a schema.
Value Described(std::string_view description, Value schema) {
  Value out = Value::Map();
  out.Add("description", Text(description));
  for (Entry& entry : schema.map) out.map.push_back(std::move(entry));
  return out;
}

// The longest name of a session is a Trace's with a hash behind it (SessionName).
constexpr std::size_t kSessionName = limits::kTraceName + 1 + 16;

Value RootSchema(const Resource& resource, const SchemaNode& spec, const SchemaNode& status) {
  const Value name =
      MapOf({{"type", Text("string")},
             {"maxLength", Value::Number(static_cast<std::int64_t>(resource.name_limit))}});
  Value metadata = MapOf({{"type", Text("object")}, {"properties", MapOf({{"name", name}})}});
  const std::string kind = std::string(resource.kind) + ".";
  return MapOf(
      {{"description", Text(resource.description)},
       {"type", Text("object")},
       {"required", Value::List({Text("spec")})},
       {"properties",
        MapOf({{"apiVersion", Described("weft.dev/v1alpha1.", MapOf({{"type", Text("string")}}))},
               {"kind", Described(kind, MapOf({{"type", Text("string")}}))},
               {"metadata", std::move(metadata)},
               {"spec", Described(resource.spec_description, spec.OpenApi())},
               {"status", Described(resource.status_description, status.OpenApi())}})}});
}

std::string CrdYaml(const Resource& resource, Value version) {
  const Value names = MapOf({{"kind", Text(resource.kind)},
                             {"listKind", Text(std::string(resource.kind) + "List")},
                             {"plural", Text(resource.plural)},
                             {"singular", Text(resource.singular)},
                             {"categories", Value::List({Text("weft")})}});
  const std::string name = std::string(resource.plural) + ".weft.dev";
  const Value crd = MapOf({{"apiVersion", Text("apiextensions.k8s.io/v1")},
                           {"kind", Text("CustomResourceDefinition")},
                           {"metadata", MapOf({{"name", Text(name)}})},
                           {"spec", MapOf({{"group", Text(kGroup)},
                                           {"names", names},
                                           {"scope", Text(resource.scope)},
                                           {"versions", Value::List({std::move(version)})}})}});
  return "# SPDX-License-Identifier: Apache-2.0\n# Made by weft-api-gen from " +
         std::string(resource.source) + "; do not edit.\n" + WriteYaml(crd);
}

Value Version(Value columns, Value schema) {
  return MapOf({{"name", Text(kVersion)},
                {"served", Value::Bool(true)},
                {"storage", Value::Bool(true)},
                {"subresources", MapOf({{"status", Value::Map()}})},
                {"additionalPrinterColumns", std::move(columns)},
                {"schema", MapOf({{"openAPIV3Schema", std::move(schema)}})}});
}

}  // namespace

std::string TraceCrdYaml() {
  const Resource trace{.kind = kTraceKind,
                       .plural = "traces",
                       .singular = "trace",
                       .name_limit = limits::kTraceName,
                       .source = "lib/api/trace_schema.cc",
                       .description = "Records events of a namespace's pods.",
                       .spec_description = "What to record.",
                       .status_description = "What is being recorded; written by weft."};
  return CrdYaml(trace, Version(TraceColumns(), RootSchema(trace, *SpecSchema(), *StatusSchema())));
}

std::string ClusterTraceCrdYaml() {
  const Resource trace{
      .kind = kClusterTraceKind,
      .plural = "clustertraces",
      .singular = "clustertrace",
      .name_limit = limits::kTraceName,
      .source = "lib/api/trace_schema.cc",
      .description =
          "Records kernel events of whole nodes. For administrators: it shows events of all "
          "namespaces.",
      .spec_description = "What to record.",
      .status_description = "What is being recorded; written by weft.",
      .scope = "Cluster"};
  return CrdYaml(trace, Version(ClusterTraceColumns(),
                                RootSchema(trace, *ClusterSpecSchema(), *StatusSchema())));
}

std::string SessionCrdYaml() {
  const Resource session{
      .kind = kSessionKind,
      .plural = "tracesessions",
      .singular = "tracesession",
      .name_limit = kSessionName,
      .source = "lib/api/session_schema.cc",
      .description = "One node's part of a Trace. weft makes it; users make Traces.",
      .spec_description = "Desired state; written by the controller.",
      .status_description = "Observed state; written by the node's agent."};
  Value version =
      Version(SessionColumns(), RootSchema(session, *SessionSpecSchema(), *SessionStatusSchema()));
  version.Add("selectableFields", Value::List({MapOf({{"jsonPath", Text(".spec.nodeName")}})}));
  return CrdYaml(session, std::move(version));
}

}  // namespace weft::api
