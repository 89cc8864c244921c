// SPDX-License-Identifier: Apache-2.0
// See function_fields.h.
#include "lib/api/function_fields.h"

#include <algorithm>
#include <array>

#include "lib/api/context.h"
#include "lib/api/function_args.h"
#include "lib/api/function_sets.h"

namespace weft::api {
namespace {

// Fields that are no arguments.
constexpr std::string_view kResult = "ret";
constexpr std::string_view kDuration = "duration";
constexpr std::string_view kDepth = "depth";
constexpr std::string_view kUnwound = "unwound";
constexpr std::array kOwnFields = {kResult, kDuration, kFaultsField, kDepth, kUnwound};

bool IsOwn(std::string_view name) {
  return std::ranges::find(kOwnFields, name) != kOwnFields.end();
}

bool IsOfApplication(const std::string& name) { return name.starts_with(kAppPrefix); }

}  // namespace

bool HasFaults(const FunctionRule& rule) {
  return std::ranges::any_of(rule.args, [](const FunctionArg& arg) {
    return arg.type == ValueType::kBytes || !IsPositional(arg);
  });
}

bool FiltersExit(const FunctionRule& rule) {
  return !rule.filter.empty() && rule.Records(FunctionMoment::kExit);
}

std::vector<FunctionField> FieldsOf(const FunctionRule& rule, FunctionMoment moment) {
  std::vector<FunctionField> fields;
  const auto add = [&](std::string_view name, ValueType type) {
    fields.push_back({.name = std::string(name), .type = type});
  };
  const auto add_arguments = [&](bool are_late, bool are_for_filters) {
    for (const FunctionArg& arg : rule.args)
      if (IsLate(arg) == are_late)
        fields.push_back({.name = IsOwn(arg.name) ? arg.name + "_" : arg.name,
                          .type = arg.type,
                          .is_for_filters = are_for_filters});
  };
  const bool is_end = moment != FunctionMoment::kEntry, is_exit = moment == FunctionMoment::kExit;
  if (!is_exit) add_arguments(false, false);
  if (is_end && rule.returns) add(kResult, *rule.returns);
  if (is_end) add_arguments(true, false);
  if (HasFaults(rule)) add(kFaultsField, ValueType::kUint16);
  if (moment == FunctionMoment::kCall) add(kDuration, ValueType::kUint64);
  add(kDepth, ValueType::kUint16);
  if (is_end) add(kUnwound, ValueType::kUint8);
  if (is_exit && FiltersExit(rule)) add_arguments(false, true);
  return fields;
}

std::string WhyNotNamed(const FunctionRule& rule, FunctionMoment moment,
                        const std::vector<std::string>& names, bool has_all) {
  const std::vector<FunctionField> fields = FieldsOf(rule, moment);
  for (const std::string& name : names) {
    // A function that is called to get such a value could be hooked itself.
    if (IsOfApplication(name))
      return "names \"" + name +
             "\": filters of functions cannot read contexts of applications; name fields of the "
             "function's events, or other contexts, such as $ctx.procname";
    const bool is_there = std::ranges::find(fields, name, &FunctionField::name) != fields.end();
    if (is_there || name.starts_with('$') || (!has_all && !IsOwn(name))) continue;
    std::string list = has_all ? "" : "the function's arguments";
    for (const FunctionField& field : fields) list += (list.empty() ? "" : ", ") + field.name;
    std::string why = "names \"" + name + "\", which ";
    why.append(NameOf(moment)).append(" events of it do not have; they have ").append(list);
    if (name == kDuration) why += ". Give record: [call]";
    if (name == kResult || name == kUnwound) why += ". Give record: [exit] or [call]";
    return why;
  }
  return "";
}

std::string WhyNotNamed(const FunctionRule& rule, const std::vector<std::string>& names) {
  const bool has_all = rule.set || std::ranges::any_of(rule.args, IsPositional);
  std::string why;
  for (FunctionRule one : ExpandSet(rule)) {
    if (!rule.set && !one.returns) one.returns = ValueType::kInt64;
    std::string problem;
    for (const FunctionMoment moment : kMoments)
      if (problem.empty() && one.Records(moment))
        problem = WhyNotNamed(one, moment, names, has_all);
    if (problem.empty()) return "";
    why = std::move(problem);
  }
  const bool is_refused_for_all = !rule.set || std::ranges::any_of(names, IsOfApplication);
  return is_refused_for_all ? why : "names what no function of the set has";
}

}  // namespace weft::api
