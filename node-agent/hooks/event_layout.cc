// SPDX-License-Identifier: Apache-2.0
// See event_layout.h.
#include "node-agent/hooks/event_layout.h"

#include "lib/api/value_type.h"
#include "lib/event/runtime_provider.h"

namespace weft::hooks {
namespace {

using api::ValueType;

constexpr uint8_t kGeneralRegisters = 6;
constexpr uint8_t kFloatingRegisters = 8;  // that pass arguments
constexpr int32_t kLogLevel = 12;          // debug_function

weft_runtime_field Field(const char* name, ValueType type) {
  weft_runtime_field field{.name = name, .elem_size = SizeOf(type)};
  if (IsFloat(type)) {
    field.kind = WEFT_FIELD_KIND_FLOAT;
    return field;
  }
  field.kind = WEFT_FIELD_KIND_INTEGER;
  field.base = 10;
  if (IsSigned(type)) field.flags = WEFT_FIELD_SIGNED;
  if (type == ValueType::kPointer) {
    field.flags = WEFT_FIELD_POINTER;
    field.base = 16;
  }
  return field;
}

}  // namespace

Result<EventLayout> LayOut(const api::FunctionRule& rule) {
  EventLayout layout;
  uint8_t general = 0, floating = 0, on_stack = 0;
  const auto refuse_string = [](const std::string& what) {
    return Fail(ErrorCode::kUnsupported,
                what +
                    ": strings of functions are not recorded yet; give type pointer, or use "
                    "spec.kernel.userProbes");
  };
  if (rule.args.size() > WEFT_HOOK_MAX_VALUES)
    return Fail(ErrorCode::kUnsupported,
                "at most " + std::to_string(WEFT_HOOK_MAX_VALUES) +
                    " arguments of a function are recorded; leave out the last ones");
  for (const api::FunctionArg& arg : rule.args) {
    if (arg.type == ValueType::kString) return refuse_string("argument \"" + arg.name + "\"");
    weft_hook_value value{.size = SizeOf(arg.type)};
    const bool in_register =
        IsFloat(arg.type) ? floating < kFloatingRegisters : general < kGeneralRegisters;
    value.source = !in_register        ? WEFT_HOOK_STACK
                   : IsFloat(arg.type) ? WEFT_HOOK_FLOATING
                                       : WEFT_HOOK_GENERAL;
    value.index = !in_register ? on_stack++ : IsFloat(arg.type) ? floating++ : general++;
    layout.values.push_back(value);
  }
  if (rule.returns) {
    if (*rule.returns == ValueType::kString) return refuse_string("returns");
    layout.result = {.source = static_cast<uint8_t>(IsFloat(*rule.returns) ? WEFT_HOOK_FLOATING
                                                                           : WEFT_HOOK_RESULT),
                     .size = SizeOf(*rule.returns)};
  }
  return layout;
}

std::string EventName(const std::string& function, Moment moment) {
  return WEFT_HOOK_NAME_PREFIX + function + (moment == Moment::kEntry ? "_entry" : "_exit");
}

Result<std::vector<uint8_t>> Describe(const api::FunctionRule& rule, const std::string& function,
                                      Moment moment, weft_event& event) {
  std::vector<weft_runtime_field> fields;
  if (moment == Moment::kEntry) {
    for (const api::FunctionArg& arg : rule.args)
      fields.push_back(Field(arg.name.c_str(), arg.type));
  } else if (rule.returns) {
    fields.push_back(Field("ret", *rule.returns));
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
