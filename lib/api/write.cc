// SPDX-License-Identifier: Apache-2.0
// Writing Traces by their schema.
#include "lib/api/write.h"

#include <utility>

#include "lib/api/document.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

Value ToValue(const Trace& trace) {
  Value out = Value::Map();
  out.Add("apiVersion", Value::String(kApiVersion));
  out.Add("kind", Value::String(kTraceKind));
  for (Entry& entry : TraceSchema().Write(trace).map) out.map.push_back(std::move(entry));
  return out;
}

}  // namespace

std::string ToYaml(const Trace& trace) { return WriteYaml(ToValue(trace)); }

std::string ToYaml(const std::vector<Trace>& traces) {
  std::string out;
  for (const Trace& trace : traces) out += (out.empty() ? "" : "---\n") + ToYaml(trace);
  return out;
}

std::string ToJson(const Trace& trace, int indent) { return WriteJson(ToValue(trace), indent); }

std::string StatusToJson(const TraceStatus& status) {
  return WriteJson(Value::Map().Add("status", StatusSchema()->Write(status)), -1);
}

}  // namespace weft::api
