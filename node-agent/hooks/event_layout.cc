// SPDX-License-Identifier: Apache-2.0
// See event_layout.h.
#include "node-agent/hooks/event_layout.h"

#include <algorithm>
#include <map>

#include "lib/api/function_args.h"
#include "lib/api/function_fields.h"
#include "lib/api/value_type.h"
#include "lib/event/runtime_provider.h"

namespace weft::hooks {

namespace {

using api::ValueType;

constexpr uint8_t kGeneralRegisters = 6;
constexpr uint8_t kGeneralRegistersOfGo = 9;
constexpr uint8_t kFloatingRegisters = 8;  // that pass arguments; Go has more, which are not saved
constexpr int32_t kLogLevel = 12;          // debug_function
struct NamedField {
  std::string name;
  weft_runtime_field field;  // without its name
};

NamedField Field(api::FunctionField of) {
  const ValueType type = of.type;
  weft_runtime_field field{.elem_size = SizeOf(type)};
  if (of.is_for_filters) field.flags |= WEFT_FIELD_NOWRITE;
  if (type == ValueType::kString) {
    field.kind = WEFT_FIELD_KIND_STRING;
    field.elem_size = 1;
  } else if (type == ValueType::kBytes) {
    field.kind = WEFT_FIELD_KIND_SEQUENCE;
    field.elem_size = 1;
    field.base = 16;
    field.length_size = sizeof(uint32_t);
  } else if (IsFloat(type)) {
    field.kind = WEFT_FIELD_KIND_FLOAT;
  } else {
    const bool is_hex = type == ValueType::kPointer || of.name == api::kFaultsField;
    field.kind = WEFT_FIELD_KIND_INTEGER;
    field.base = is_hex ? 16 : 10;
    if (IsSigned(type)) field.flags |= WEFT_FIELD_SIGNED;
    if (type == ValueType::kPointer) field.flags |= WEFT_FIELD_POINTER;
  }
  return {std::move(of.name), field};
}

// Where arguments are, by the registers and the stack that those before them use.
class Places {
 public:
  explicit Places(bool is_go) : most_(is_go ? kGeneralRegistersOfGo : kGeneralRegisters) {}
  weft_hook_value Next(ValueType type) {
    const bool in_register = IsFloat(type) ? floating_ < kFloatingRegisters : general_ < most_;
    if (!in_register) return {.source = WEFT_HOOK_STACK, .index = on_stack_++};
    if (IsFloat(type)) return {.source = WEFT_HOOK_FLOATING, .index = floating_++};
    return {.source = WEFT_HOOK_GENERAL, .index = general_++};
  }

 private:
  const uint8_t most_;
  uint8_t general_ = 0, floating_ = 0, on_stack_ = 0;
};

uint8_t KindOf(ValueType type) {
  if (type == ValueType::kBytes) return WEFT_HOOK_BYTES;
  return type == ValueType::kString ? WEFT_HOOK_TEXT : WEFT_HOOK_NUMBER;
}

// In the image: of a text, and of bytes, their number.
uint8_t ImageSize(ValueType type) {
  return SizeOf(type) == 0 ? uint8_t{sizeof(uint32_t)} : SizeOf(type);
}

Status TakeSteps(const api::FunctionArg& arg, const api::MemberPath& path,
                 weft_hook_detail& detail) {
  for (size_t i = 0; i < path.steps.size(); ++i) {
    int64_t offset = 0;
    for (const std::string& member : path.steps[i]) {
      const auto number = api::ParseCount(member);
      if (!number)
        return Fail(ErrorCode::kUnsupported,
                    "the path \"" + arg.path +
                        "\" names members, and its debug information is not "
                        "known: give their first bytes instead, as in p->16");
      offset += *number;
    }
    if (offset > INT32_MAX) return Fail(ErrorCode::kUnsupported, "its path is too long");
    const bool is_last = i + 1 == path.steps.size();
    if (is_last && path.is_address) {
      detail.tail = static_cast<int32_t>(offset);
    } else {
      detail.offsets[detail.steps++] = static_cast<int32_t>(offset);
    }
  }
  return {};
}

}  // namespace

Result<EventLayout> LayOut(const api::FunctionRule& rule, bool is_go) {
  EventLayout layout;
  if (rule.args.size() > WEFT_HOOK_MAX_VALUES)
    return Fail(ErrorCode::kUnsupported,
                "at most " + std::to_string(WEFT_HOOK_MAX_VALUES) +
                    " arguments of a function are recorded; leave out the last ones");
  Places places(is_go);
  std::map<std::string, weft_hook_value> by_name;
  for (const api::FunctionArg& arg : rule.args) {
    if (!IsPositional(arg)) continue;
    weft_hook_value value = places.Next(arg.type);
    if (is_go && value.source == WEFT_HOOK_STACK)
      return Fail(ErrorCode::kUnsupported,
                  "weft reads at most 9 integers and 8 floating point numbers of a Go function");
    value.size = SizeOf(arg.type);
    value.kind = IsSigned(arg.type) ? WEFT_HOOK_SIGNED : WEFT_HOOK_NUMBER;
    by_name.emplace(arg.name, value);
  }
  const auto result =
      rule.returns
          ? weft_hook_value{.source = static_cast<uint8_t>(
                                IsFloat(*rule.returns) ? WEFT_HOOK_FLOATING : WEFT_HOOK_RESULT),
                            .size = ImageSize(*rule.returns),
                            .kind = KindOf(*rule.returns)}
          : weft_hook_value{};
  layout.result = result;
  bool any_detail = false, reads = result.kind == WEFT_HOOK_TEXT;
  for (const api::FunctionArg& arg : rule.args) {
    weft_hook_detail detail{};
    std::string of = arg.name, why;
    if (!IsPositional(arg)) {
      const auto path = api::ParseMemberPath(arg.path, why);
      if (!path) return Fail(ErrorCode::kUnsupported, "its path " + why);
      of = path->argument;
      WEFT_TRY(TakeSteps(arg, *path, detail));
    }
    const auto place = by_name.find(of);
    if (place == by_name.end())
      return Fail(ErrorCode::kUnsupported,
                  "the path \"" + arg.path + "\" begins at no argument that it has");
    weft_hook_value value = place->second;
    value.size = ImageSize(arg.type);
    value.kind = KindOf(arg.type);
    if (value.kind == WEFT_HOOK_BYTES) {
      detail.at_exit = IsLate(arg) ? 1 : 0;
      if (IsLate(arg)) {
        detail.length_of = result;
        if (rule.returns && IsSigned(*rule.returns)) detail.length_of.kind = WEFT_HOOK_SIGNED;
      } else if (const auto count = api::ParseCount(arg.length)) {
        detail.length = *count;
      } else if (const auto argument = by_name.find(arg.length); argument != by_name.end()) {
        detail.length_of = argument->second;
      } else {
        return Fail(ErrorCode::kUnsupported,
                    "the length \"" + arg.length + "\" is no argument that it has");
      }
    }
    any_detail |= value.kind == WEFT_HOOK_BYTES || !IsPositional(arg);
    reads |= value.kind != WEFT_HOOK_NUMBER || !IsPositional(arg);
    layout.values.push_back(value);
    layout.details.push_back(detail);
  }
  if (!any_detail) layout.details.clear();
  if (reads) layout.flags |= WEFT_HOOK_READS_MEMORY;
  if (HasFaults(rule)) layout.flags |= WEFT_HOOK_HAS_FAULTS;
  if (FiltersExit(rule)) layout.flags |= WEFT_HOOK_EXIT_ARGUMENTS;
  return layout;
}

std::string EventName(const std::string& function, Moment moment) {
  return std::string(WEFT_HOOK_NAME_PREFIX).append(function).append("_").append(NameOf(moment));
}

Result<std::vector<uint8_t>> Describe(const api::FunctionRule& rule, const std::string& function,
                                      Moment moment, weft_event& event) {
  std::vector<NamedField> named;
  for (api::FunctionField& field : FieldsOf(rule, moment)) named.push_back(Field(std::move(field)));
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
