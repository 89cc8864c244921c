// SPDX-License-Identifier: Apache-2.0
// What objects and lists of a schema share whatever their C++ type is.
#include "lib/api/schema.h"

#include <set>

#include "lib/api/nearest.h"

namespace weft::api {

bool ExpectKind(const Value& value, Value::Kind kind, Reader& reader) {
  if (value.kind == kind) return true;
  std::string message = "must be " + std::string(Describe(kind)) + ", not ";
  const bool scalar = value.kind == Value::Kind::kBool || value.kind == Value::Kind::kNumber;
  if (kind == Value::Kind::kString && scalar) {
    message += std::string(Describe(value.kind)) + ": write " + Quote(value.text);
  } else if (value.kind == Value::Kind::kString) {
    message += Quote(value.text);
  } else {
    message += Describe(value.kind);
  }
  reader.Fail(value.mark, std::move(message));
  return false;
}

void FailUnknownField(const Entry& entry, const std::vector<FieldInfo>& fields, Reader& reader) {
  std::vector<std::string_view> names;
  for (const FieldInfo& field : fields) {
    if (!field.hidden) names.push_back(field.name);
  }
  // A field that belongs one level down is a usual slip: spec.events for spec.user.events.
  for (const FieldInfo& field : fields) {
    if (field.type == nullptr || field.hidden) continue;
    for (const FieldInfo& below : field.type->Fields()) {
      if (below.name != entry.key) continue;
      reader.Fail(entry.mark, "unknown field, did you mean " +
                                  Quote(std::string(field.name) + "." + entry.key) + "?");
      return;
    }
  }
  reader.Fail(entry.mark, "unknown field" + DidYouMean(entry.key, names));
}

void FailMissing(const Value& object, std::string_view field, Reader& reader) {
  const Reader::Scope scope(reader, field);
  reader.Fail(object.mark, "missing, but required");
}

void FailRule(const Value& object, std::string_view field, std::string problem, Reader& reader) {
  if (field.empty()) return reader.Fail(object.mark, std::move(problem));
  const Value* at = object.Find(field);
  const Reader::Scope scope(reader, field);
  reader.Fail(at != nullptr ? at->mark : object.mark, std::move(problem));
}

bool CheckDoubleKeys(const Value& map, Reader& reader) {
  std::set<std::string_view> seen;
  bool good = true;
  for (const Entry& entry : map.map) {
    if (seen.insert(entry.key).second) continue;
    const Reader::Scope scope(reader, entry.key);
    reader.Fail(entry.mark, "is given twice");
    good = false;
  }
  return good;
}

Value ObjectOpenApi(const std::vector<FieldInfo>& fields) {
  Value out = Value::Map();
  out.Add("type", Value::String("object"));
  Value required = Value::List();
  Value properties = Value::Map();
  for (const FieldInfo& field : fields) {
    if (field.hidden) continue;
    if (field.required) required.list.push_back(Value::String(field.name));
    Value schema = Value::Map();
    schema.Add("description", Value::String(field.doc));
    for (Entry& entry : field.type->OpenApi().map) schema.map.push_back(std::move(entry));
    if (field.default_value) schema.Add("default", *field.default_value);
    properties.Add(field.name, std::move(schema));
  }
  if (!required.list.empty()) out.Add("required", std::move(required));
  out.Add("properties", std::move(properties));
  return out;
}

void AddRules(Value& schema, const std::vector<RuleInfo>& rules) {
  Value list = Value::List();
  for (const RuleInfo& rule : rules) {
    if (rule.cel.empty()) continue;
    Value item = Value::Map();
    item.Add("rule", Value::String(rule.cel));
    item.Add("message", Value::String(rule.message));
    if (!rule.field.empty()) item.Add("fieldPath", Value::String("." + rule.field));
    list.list.push_back(std::move(item));
  }
  if (!list.list.empty()) schema.Add("x-kubernetes-validations", std::move(list));
}

bool CheckListSize(const Value& value, std::size_t max, Reader& reader) {
  if (value.list.size() <= max) return true;
  reader.Fail(value.mark, "has " + std::to_string(value.list.size()) + " items, at most " +
                              std::to_string(max) + " are allowed");
  return false;
}

void CheckSetItems(const Value& list, Reader& reader) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.list.size(); ++i) {
    const Value& item = list.list[i];
    if (item.text.empty() || seen.insert(item.text).second) continue;
    const Reader::Scope scope(reader, i);
    reader.Fail(item.mark, Quote(item.text) + " is in this list twice");
  }
}

Value ListOpenApi(Value items, std::size_t max, ListKind kind) {
  Value out = Value::Map();
  out.Add("type", Value::String("array"));
  out.Add("maxItems", Value::Number(static_cast<std::int64_t>(max)));
  const char* list_type = kind == ListKind::kSet         ? "set"
                          : kind == ListKind::kMapByType ? "map"
                                                         : "atomic";
  out.Add("x-kubernetes-list-type", Value::String(list_type));
  if (kind == ListKind::kMapByType)
    out.Add("x-kubernetes-list-map-keys", Value::List({Value::String("type")}));
  out.Add("items", std::move(items));
  return out;
}

}  // namespace weft::api
