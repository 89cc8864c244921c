// SPDX-License-Identifier: Apache-2.0
// The building blocks of a schema table. Each type reads itself from a document, writes itself, and
// describes itself for the CRD and the reference. To add a field to the API, add one line to
// trace_schema.cc and the member to its struct. Internal to lib/api.
//
// Invariants: types are made once, never change and are never destroyed. Read() never throws; if
// the document is wrong, it leaves the target's default and reports the problem to the Reader.
// Thread-safety: the objects are const and usable from all threads.
#ifndef WEFT_LIB_API_SCHEMA_H_
#define WEFT_LIB_API_SCHEMA_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lib/api/reader.h"
#include "lib/api/value.h"

namespace weft::api {

class SchemaNode;

// A field as the reference, the CRD and "did you mean" see it.
struct FieldInfo {
  std::string_view name;
  std::string_view doc;
  const SchemaNode* type = nullptr;
  bool required = false;
  bool hidden = false;  // accepted, but not part of our API
  std::optional<Value> default_value;
};

class SchemaNode {
 public:
  virtual ~SchemaNode() = default;
  // Returns openAPI v3 as in Kubernetes' structural schemas, without description and default.
  virtual Value OpenApi() const = 0;
  // Returns the type's name for people: "string", "list of EventRule".
  virtual std::string TypeName() const = 0;
  // Returns what people must know besides the type: "at most 64", "one of a, b".
  virtual std::string LimitText() const { return ""; }
  // Returns the fields of an object, or of a list's objects; else none.
  virtual std::vector<FieldInfo> Fields() const { return {}; }
};

template <typename T>
class Type : public SchemaNode {
 public:
  virtual void Read(const Value& value, T& out, Reader& reader) const = 0;
  virtual Value Write(const T& value) const = 0;
};

template <typename T>
using TypePtr = std::shared_ptr<const Type<T>>;

// Says "must be X" unless the value is of that kind.
bool ExpectKind(const Value& value, Value::Kind kind, Reader& reader);

// Reports an unknown field of an object with the fields it has; `elsewhere` finds its right place.
void FailUnknownField(const Entry& entry, const std::vector<FieldInfo>& fields, Reader& reader);
void FailMissing(const Value& object, std::string_view field, Reader& reader);
// Reports a broken rule at the object, or at its field.
void FailRule(const Value& object, std::string_view field, std::string problem, Reader& reader);
// Reports keys that occur twice. Returns true if there are none.
bool CheckDoubleKeys(const Value& map, Reader& reader);

// Returns the parts of an object's openAPI that do not depend on its C++ type.
Value ObjectOpenApi(const std::vector<FieldInfo>& fields);
// Appends x-kubernetes-validations.
struct RuleInfo {
  std::string cel;  // "": only checked by us
  std::string message;
  std::string field;  // where the message belongs, relative to the object; "": the object
};
void AddRules(Value& schema, const std::vector<RuleInfo>& rules);

enum FieldFlag : unsigned {
  kOptional = 0,
  kRequired = 1,     // must be given; always written
  kAlways = 2,       // always written
  kShowDefault = 4,  // the CRD has our default as its own
  kHidden = 8,       // read and written, but not in the CRD or the reference
};

// One field of the C++ struct T.
template <typename T>
struct Field {
  FieldInfo info;
  bool always = false;
  std::function<void(const Value&, T&, Reader&)> read;
  std::function<std::optional<Value>(const T&)> write;  // nullopt: has its default
  std::shared_ptr<const SchemaNode> owner;
};

// A field that is stored in a member.
template <typename T, typename M>
Field<T> MakeField(std::string_view name, M T::* member, std::shared_ptr<const Type<M>> type,
                   std::string_view doc, unsigned flags = kOptional) {
  Field<T> field;
  field.info = {.name = name,
                .doc = doc,
                .type = type.get(),
                .required = (flags & kRequired) != 0,
                .hidden = (flags & kHidden) != 0};
  if ((flags & kShowDefault) != 0) field.info.default_value = type->Write(T{}.*member);
  field.always = (flags & (kRequired | kAlways)) != 0;
  field.read = [=](const Value& value, T& out, Reader& reader) {
    type->Read(value, out.*member, reader);
  };
  field.write = [=](const T& object) -> std::optional<Value> {
    if (object.*member == T{}.*member) return std::nullopt;
    return type->Write(object.*member);
  };
  if (field.always) {
    field.write = [=](const T& object) -> std::optional<Value> {
      return type->Write(object.*member);
    };
  }
  field.owner = std::move(type);
  return field;
}

// A field that may be absent.
template <typename T, typename M>
Field<T> MakeField(std::string_view name, std::optional<M> T::* member,
                   std::shared_ptr<const Type<M>> type, std::string_view doc) {
  Field<T> field;
  field.info = {.name = name, .doc = doc, .type = type.get()};
  field.read = [=](const Value& value, T& out, Reader& reader) {
    type->Read(value, (out.*member).emplace(), reader);
  };
  field.write = [=](const T& object) -> std::optional<Value> {
    if (!(object.*member).has_value()) return std::nullopt;
    return type->Write(*(object.*member));
  };
  field.owner = std::move(type);
  return field;
}

// A standard field of Kubernetes that is accepted and forgotten here.
template <typename T>
Field<T> IgnoredField(std::string_view name, bool hidden = true) {
  Field<T> field;
  field.info = {.name = name, .hidden = hidden};
  field.read = [](const Value&, T&, Reader&) {};
  field.write = [](const T&) -> std::optional<Value> { return std::nullopt; };
  return field;
}

// A condition over several fields, once in C++ and once in CEL for the API server.
template <typename T>
struct Rule {
  RuleInfo info;
  std::function<std::string(const T&)> problem;  // "": none; no function: only the server checks
  // Likewise, for a condition that needs what the caller gave.
  std::function<std::string(const T&, const ParseOptions&)> problem_with;
};

template <typename T, typename Predicate>
Rule<T> MakeRule(const RuleInfo& info, Predicate holds) {
  return {info, [holds, message = info.message](const T& object) {
            return holds(object) ? std::string() : message;
          }};
}

template <typename T>
class ObjectType final : public Type<T> {
 public:
  ObjectType(std::string name, std::vector<Field<T>> fields, std::vector<Rule<T>> rules = {})
      : name_(std::move(name)), fields_(std::move(fields)), rules_(std::move(rules)) {}

  void Read(const Value& value, T& out, Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kMap, reader)) return;
    const std::size_t failures = reader.failures();
    CheckDoubleKeys(value, reader);
    for (const Entry& entry : value.map) ReadEntry(entry, out, reader);
    for (const Field<T>& field : fields_) {
      if (!field.info.required) continue;
      const Value* given = value.Find(field.info.name);
      if (given == nullptr || given->kind == Value::Kind::kNull)
        FailMissing(value, field.info.name, reader);
    }
    if (reader.failures() != failures) return;  // rules would only repeat it
    for (const Rule<T>& rule : rules_) {
      std::string problem = rule.problem ? rule.problem(out) : "";
      if (rule.problem_with) problem = rule.problem_with(out, reader.options());
      if (!problem.empty()) FailRule(value, rule.info.field, std::move(problem), reader);
    }
  }

  Value Write(const T& object) const override {
    Value out = Value::Map();
    for (const Field<T>& field : fields_) {
      if (std::optional<Value> value = field.write(object))
        out.Add(field.info.name, std::move(*value));
    }
    return out;
  }

  Value OpenApi() const override {
    Value out = ObjectOpenApi(Fields());
    std::vector<RuleInfo> rules;
    rules.reserve(rules_.size());
    for (const Rule<T>& rule : rules_) rules.push_back(rule.info);
    AddRules(out, rules);
    return out;
  }

  std::string TypeName() const override { return name_; }

  std::vector<FieldInfo> Fields() const override {
    std::vector<FieldInfo> out;
    out.reserve(fields_.size());
    for (const Field<T>& field : fields_) out.push_back(field.info);
    return out;
  }

 private:
  void ReadEntry(const Entry& entry, T& out, Reader& reader) const {
    const Reader::Scope scope(reader, entry.key);
    for (const Field<T>& field : fields_) {
      if (field.info.name != entry.key) continue;
      // null means "not given", as for the API server.
      if (entry.value.kind != Value::Kind::kNull) field.read(entry.value, out, reader);
      return;
    }
    if (reader.options().refuse_unknown_fields) FailUnknownField(entry, Fields(), reader);
  }

  std::string name_;
  std::vector<Field<T>> fields_;
  std::vector<Rule<T>> rules_;
};

template <typename T>
TypePtr<T> Object(std::string name, std::vector<Field<T>> fields, std::vector<Rule<T>> rules = {}) {
  return std::make_shared<ObjectType<T>>(std::move(name), std::move(fields), std::move(rules));
}

enum class ListKind { kAtomic, kSet, kMapByType };

// Checks the parts of a list that do not depend on its C++ type.
bool CheckListSize(const Value& value, std::size_t max, Reader& reader);
void CheckSetItems(const Value& list, Reader& reader);
Value ListOpenApi(Value items, std::size_t max, ListKind kind);

template <typename T>
class ListType final : public Type<std::vector<T>> {
 public:
  ListType(TypePtr<T> item, std::size_t max, ListKind kind = ListKind::kAtomic)
      : item_(std::move(item)), max_(max), kind_(kind) {}

  void Read(const Value& value, std::vector<T>& out, Reader& reader) const override {
    if (!ExpectKind(value, Value::Kind::kList, reader)) return;
    if (!CheckListSize(value, max_, reader)) return;
    for (std::size_t i = 0; i < value.list.size(); ++i) {
      const Reader::Scope scope(reader, i);
      item_->Read(value.list[i], out.emplace_back(), reader);
    }
    if (kind_ == ListKind::kSet) CheckSetItems(value, reader);
  }

  Value Write(const std::vector<T>& list) const override {
    Value out = Value::List();
    for (const T& item : list) out.list.push_back(item_->Write(item));
    return out;
  }

  Value OpenApi() const override { return ListOpenApi(item_->OpenApi(), max_, kind_); }
  std::string TypeName() const override { return "list of " + item_->TypeName(); }
  std::string LimitText() const override { return "at most " + std::to_string(max_); }
  std::vector<FieldInfo> Fields() const override { return item_->Fields(); }

 private:
  TypePtr<T> item_;
  std::size_t max_;
  ListKind kind_;
};

template <typename T>
TypePtr<std::vector<T>> ListOf(TypePtr<T> item, std::size_t max,
                               ListKind kind = ListKind::kAtomic) {
  return std::make_shared<ListType<T>>(std::move(item), max, kind);
}

}  // namespace weft::api

#endif  // WEFT_LIB_API_SCHEMA_H_
