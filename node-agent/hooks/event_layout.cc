// SPDX-License-Identifier: Apache-2.0
// See event_layout.h.
#include "node-agent/hooks/event_layout.h"

#include <algorithm>

#include "lib/api/filters.h"
#include "lib/api/value_type.h"
#include "lib/event/runtime_provider.h"

namespace weft::hooks {

bool FiltersExit(const api::FunctionRule& rule) {
  return !rule.filter.empty() && rule.Records(Moment::kExit);
}

namespace {

using api::ValueType;

constexpr uint8_t kGeneralRegisters = 6;
constexpr uint8_t kFloatingRegisters = 8;  // that pass arguments
constexpr int32_t kLogLevel = 12;          // debug_function
// Fields that are no arguments.
constexpr const char* kResult = "ret";
constexpr const char* kDuration = "duration";
constexpr const char* kDepth = "depth";

struct NamedField {
  std::string name;
  weft_runtime_field field;  // without its name
};

NamedField Field(std::string name, ValueType type, uint8_t flags = 0) {
  weft_runtime_field field{.flags = flags, .elem_size = SizeOf(type)};
  if (type == ValueType::kString) {
    field.kind = WEFT_FIELD_KIND_STRING;
    field.elem_size = 1;
    return {std::move(name), field};
  }
  if (IsFloat(type)) {
    field.kind = WEFT_FIELD_KIND_FLOAT;
    return {std::move(name), field};
  }
  field.kind = WEFT_FIELD_KIND_INTEGER;
  field.base = type == ValueType::kPointer ? 16 : 10;
  if (IsSigned(type)) field.flags |= WEFT_FIELD_SIGNED;
  if (type == ValueType::kPointer) field.flags |= WEFT_FIELD_POINTER;
  return {std::move(name), field};
}

std::string FieldName(const api::FunctionArg& arg) {
  for (const char* name : {kResult, kDuration, kDepth})
    if (arg.name == name) return arg.name + "_";
  return arg.name;
}

// Returns the fields in the order of the image.
std::vector<NamedField> Fields(const api::FunctionRule& rule, Moment moment) {
  std::vector<NamedField> fields;
  const auto add_arguments = [&](uint8_t flags) {
    for (const api::FunctionArg& arg : rule.args)
      fields.push_back(Field(FieldName(arg), arg.type, flags));
  };
  if (moment != Moment::kExit) add_arguments(0);
  if (moment != Moment::kEntry && rule.returns) fields.push_back(Field(kResult, *rule.returns));
  if (moment == Moment::kCall) fields.push_back(Field(kDuration, ValueType::kUint64));
  fields.push_back(Field(kDepth, ValueType::kUint16));
  if (moment == Moment::kExit && FiltersExit(rule)) add_arguments(WEFT_FIELD_NOWRITE);
  return fields;
}

}  // namespace

Result<EventLayout> LayOut(const api::FunctionRule& rule) {
  EventLayout layout;
  uint8_t general = 0, floating = 0, on_stack = 0;
  if (rule.args.size() > WEFT_HOOK_MAX_VALUES)
    return Fail(ErrorCode::kUnsupported,
                "at most " + std::to_string(WEFT_HOOK_MAX_VALUES) +
                    " arguments of a function are recorded; leave out the last ones");
  for (const api::FunctionArg& arg : rule.args) {
    const bool is_text = arg.type == ValueType::kString;
    weft_hook_value value{
        .size = is_text ? uint8_t{sizeof(uint32_t)} : SizeOf(arg.type),
        .kind = static_cast<uint8_t>(is_text ? WEFT_HOOK_TEXT : WEFT_HOOK_NUMBER)};
    const bool in_register =
        IsFloat(arg.type) ? floating < kFloatingRegisters : general < kGeneralRegisters;
    value.source = !in_register        ? WEFT_HOOK_STACK
                   : IsFloat(arg.type) ? WEFT_HOOK_FLOATING
                                       : WEFT_HOOK_GENERAL;
    value.index = !in_register ? on_stack++ : IsFloat(arg.type) ? floating++ : general++;
    layout.values.push_back(value);
  }
  if (rule.returns) {
    if (*rule.returns == ValueType::kString)
      return Fail(ErrorCode::kUnsupported,
                  "returns: a text is recorded of arguments only; give type pointer");
    layout.result = {.source = static_cast<uint8_t>(IsFloat(*rule.returns) ? WEFT_HOOK_FLOATING
                                                                           : WEFT_HOOK_RESULT),
                     .size = SizeOf(*rule.returns)};
  }
  return layout;
}

std::string EventName(const std::string& function, Moment moment) {
  const char* suffix = "";
  switch (moment) {
    case Moment::kEntry:
      suffix = "_entry";
      break;
    case Moment::kExit:
      suffix = "_exit";
      break;
    case Moment::kCall:
      suffix = "_call";
      break;
  }
  return WEFT_HOOK_NAME_PREFIX + function + suffix;
}

std::vector<std::string> FieldsOf(const api::FunctionRule& rule, Moment moment) {
  std::vector<std::string> names;
  for (const NamedField& field : Fields(rule, moment)) names.push_back(field.name);
  return names;
}

std::string WhyNotFiltered(const api::FunctionRule& rule, Moment moment) {
  const std::vector<std::string> fields = FieldsOf(rule, moment);
  const std::vector<std::string> named = api::FieldsOfFilter(rule.filter);
  const auto lacking = std::ranges::find_if(named, [&](const std::string& name) {
    return std::ranges::find(fields, name) == fields.end();
  });
  if (lacking == named.end()) return "";
  std::string list;
  for (const std::string& field : fields) {
    if (!list.empty()) list += ", ";
    list += field;
  }
  return "its filter names \"" + *lacking + "\", which the event " + EventName("NAME", moment) +
         " does not have; it has " + list;
}

Result<std::vector<uint8_t>> Describe(const api::FunctionRule& rule, const std::string& function,
                                      Moment moment, weft_event& event) {
  const std::vector<NamedField> named = Fields(rule, moment);
  std::vector<weft_runtime_field> fields;
  for (const NamedField& field : named) {
    fields.push_back(field.field);
    fields.back().name = field.name.c_str();
  }
  const std::string name = EventName(function, moment);
  const weft_runtime_event source{.name = name.c_str(),
                                  .loglevel = kLogLevel,
                                  .field_count = static_cast<uint32_t>(fields.size()),
                                  .fields = fields.data(),
                                  .size_multiple = 8};
  const int bytes = weft_runtime_describe(&source, nullptr, 0);
  if (bytes < 0) return Fail(ErrorCode::kInvalid, "its name makes no name of an event");
  std::vector<uint8_t> description(static_cast<size_t>(bytes));
  if (weft_runtime_provide(&source, description.data(), static_cast<uint32_t>(bytes), &event) < 0)
    return Fail(ErrorCode::kInvalid, "its arguments' names are no names of fields");
  return description;
}

}  // namespace weft::hooks
