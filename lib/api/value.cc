// SPDX-License-Identifier: Apache-2.0
// Making and searching document trees.
#include "lib/api/value.h"

namespace weft::api {

Value::Value() = default;
Value::~Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;

Value Value::Bool(bool value) {
  Value out;
  out.kind = Kind::kBool;
  out.text = value ? "true" : "false";
  return out;
}

Value Value::Number(std::int64_t value) {
  Value out;
  out.kind = Kind::kNumber;
  out.text = std::to_string(value);
  return out;
}

Value Value::String(std::string_view value) {
  Value out;
  out.kind = Kind::kString;
  out.text = value;
  return out;
}

Value Value::List(std::vector<Value> items) {
  Value out;
  out.kind = Kind::kList;
  out.list = std::move(items);
  return out;
}

Value Value::Map() {
  Value out;
  out.kind = Kind::kMap;
  return out;
}

Value& Value::Add(std::string_view key, Value value) {
  map.push_back({std::string(key), {}, std::move(value)});
  return *this;
}

const Value* Value::Find(std::string_view key) const {
  for (const Entry& entry : map) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string_view Describe(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNull:
      return "nothing";
    case Value::Kind::kBool:
      return "true or false";
    case Value::Kind::kNumber:
      return "a number";
    case Value::Kind::kString:
      return "a string";
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      return "a mapping";
  }
  return "";
}

}  // namespace weft::api
