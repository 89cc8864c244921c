// SPDX-License-Identifier: Apache-2.0
// The field reference in Markdown: one table per object, in the order of the schema.
#include <string>
#include <vector>

#include "lib/api/crd.h"
#include "lib/api/session_schema.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

// The character | ends a cell.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string DefaultText(const Value& value) {
  return value.kind == Value::Kind::kMap ? "" : ", default `" + value.text + "`";
}

void AppendRow(std::string& out, const FieldInfo& field) {
  out += "| `" + std::string(field.name) + "` | " + Cell(field.type->TypeName());
  if (const std::string limit = field.type->LimitText(); !limit.empty()) out += ", " + Cell(limit);
  if (field.default_value) out += DefaultText(*field.default_value);
  if (field.required) out += ", **required**";
  out += " | " + Cell(field.doc) + " |\n";
}

void AppendFields(std::string& out, const std::string& path, const SchemaNode& node) {
  out += "### " + path + "\n\n| field | type | meaning |\n|---|---|---|\n";
  for (const FieldInfo& field : node.Fields()) {
    if (!field.hidden) AppendRow(out, field);
  }
  out += "\n";
}

void AppendTable(std::string& out, const std::string& path, const SchemaNode& node) {
  AppendFields(out, path, node);
  for (const FieldInfo& field : node.Fields()) {
    if (field.hidden || field.type->Fields().empty()) continue;
    if (field.type == SpecSchema().get()) continue;  // a Trace's spec in a session: it has its page
    const bool list = field.type->TypeName().starts_with("list of");
    AppendTable(out, path + "." + std::string(field.name) + (list ? "[]" : ""), *field.type);
  }
}

}  // namespace

std::string TraceReference() {
  std::string out;
  AppendTable(out, "metadata", MetadataSchema());
  AppendTable(out, "spec", *SpecSchema());
  AppendTable(out, "status", *StatusSchema());
  return out;
}

std::string ClusterTraceReference() {
  std::string out;
  AppendFields(out, "spec", *ClusterSpecSchema());
  for (const FieldInfo& field : ClusterSpecSchema()->Fields()) {
    if (field.name == "nodes") AppendFields(out, "spec.nodes", *field.type);
  }
  return out;
}

std::string SessionReference() {
  std::string out;
  AppendTable(out, "spec", *SessionSpecSchema());
  AppendTable(out, "status", *SessionStatusSchema());
  return out;
}

}  // namespace weft::api
