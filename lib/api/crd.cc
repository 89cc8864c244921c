// SPDX-License-Identifier: Apache-2.0
// The CRD of Trace: a structural schema, with CEL rules where openAPI says too little.
#include "lib/api/crd.h"

#include <initializer_list>
#include <utility>

#include "lib/api/document.h"
#include "lib/api/limits.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

Value Object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value out = Value::Map();
  for (const auto& [key, value] : members) out.Add(key, value);
  return out;
}

Value Text(std::string_view text) { return Value::String(text); }

Value Column(std::string_view name, std::string_view type, std::string_view path,
             std::string_view description) {
  return Object({{"name", Text(name)},
                 {"type", Text(type)},
                 {"jsonPath", Text(path)},
                 {"description", Text(description)}});
}

Value Columns() {
  return Value::List(
      {Column("Phase", "string", ".status.phase", "Where the Trace is in its life."),
       Column("Pods", "integer", ".status.pods.traced", "Pods that are traced."),
       Column("Events", "integer", ".status.events.delivered", "Events that can be read."),
       Column("Lost", "integer", ".status.events.missing",
              "Events that happened and cannot be read: discarded and lost."),
       Column("Relay", "string", ".status.relay", "The relay that stores the Trace."),
       Column("Age", "date", ".metadata.creationTimestamp", "Time since it was made.")});
}

// "type" and the rest of a schema behind its description.
Value Described(std::string_view description, Value schema) {
  Value out = Value::Map();
  out.Add("description", Text(description));
  for (Entry& entry : schema.map) out.map.push_back(std::move(entry));
  return out;
}

Value RootSchema() {
  const Value name =
      Object({{"type", Text("string")},
              {"maxLength", Value::Number(static_cast<std::int64_t>(limits::kTraceName))}});
  Value metadata = Object({{"type", Text("object")}, {"properties", Object({{"name", name}})}});
  return Object(
      {{"description", Text("What to record of the pods of a namespace, and what is being "
                            "recorded.")},
       {"type", Text("object")},
       {"required", Value::List({Text("spec")})},
       {"properties",
        Object({{"apiVersion", Described("weft.dev/v1alpha1.", Object({{"type", Text("string")}}))},
                {"kind", Described("Trace.", Object({{"type", Text("string")}}))},
                {"metadata", std::move(metadata)},
                {"spec", Described("What to record.", SpecSchema()->OpenApi())},
                {"status", Described("What is being recorded; written by weft.",
                                     StatusSchema()->OpenApi())}})}});
}

}  // namespace

std::string TraceCrdYaml() {
  const Value names = Object({{"kind", Text(kTraceKind)},
                              {"listKind", Text("TraceList")},
                              {"plural", Text("traces")},
                              {"singular", Text("trace")},
                              {"categories", Value::List({Text("weft")})}});
  Value version = Object({{"name", Text(kVersion)},
                          {"served", Value::Bool(true)},
                          {"storage", Value::Bool(true)},
                          {"subresources", Object({{"status", Value::Map()}})},
                          {"additionalPrinterColumns", Columns()},
                          {"schema", Object({{"openAPIV3Schema", RootSchema()}})}});
  const Value crd = Object({{"apiVersion", Text("apiextensions.k8s.io/v1")},
                            {"kind", Text("CustomResourceDefinition")},
                            {"metadata", Object({{"name", Text("traces.weft.dev")}})},
                            {"spec", Object({{"group", Text(kGroup)},
                                             {"names", names},
                                             {"scope", Text("Namespaced")},
                                             {"versions", Value::List({std::move(version)})}})}});
  return "# SPDX-License-Identifier: Apache-2.0\n"
         "# Made by weft-api-gen from lib/api/trace_schema.cc; do not edit.\n" +
         WriteYaml(crd);
}

}  // namespace weft::api
