// SPDX-License-Identifier: Apache-2.0
// See rule_check.h.
#include "lib/api/rule_check.h"

#include <algorithm>
#include <set>

#include "lib/api/diagnostic.h"
#include "lib/api/filters.h"
#include "lib/api/limits.h"
#include "lib/api/nearest.h"
#include "lib/event/match.h"

namespace weft::api {
namespace {

constexpr std::string_view kLibraryProviders[] = {
    "lttng_ust_tracef:", "lttng_ust_tracelog:", "lttng_ust_statedump:", "weft_"};
constexpr const char* kStatedumpEvent = "lttng_ust_statedump:bin_info";
constexpr std::int32_t kStatedumpLevel = 13;
constexpr std::string_view kStatedumpFields[] = {
    "baddr", "memsz", "path", "is_pic", "has_build_id", "build_id", "has_debug_link", "procname"};
// Events of functions (spec.user.functions), which a hook makes and no file offers.
constexpr std::string_view kFunctionEvents = "function:";

// Sorted, each once.
using Names = std::set<std::string_view>;

// A name that a message may suggest.
bool IsPlain(std::string_view name) {
  return name.size() <= limits::kEventName &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string Suggest(std::string_view name, const Names& names) {
  std::vector<std::string_view> plain;
  std::ranges::copy_if(names, std::back_inserter(plain), IsPlain);
  return plain.empty() ? "" : DidYouMean(name, plain);
}

using Events = std::vector<const EventDescription*>;

// One event must pass both filters.
FilterFit FitBoth(const EventRule& rule, const std::string& filter, const EventDescription& event) {
  for (const std::string& text : {filter, rule.filter}) {
    if (text.empty()) continue;
    const FilterFit fit = FitFilter(text, event);
    if (fit != FilterFit::kFits) return fit;
  }
  return FilterFit::kFits;
}

std::string CheckFields(const EventRule& rule, const std::string& filter, const Events& events) {
  bool is_of_types = false;
  for (const EventDescription* event : events) {
    const FilterFit fit = FitBoth(rule, filter, *event);
    if (fit == FilterFit::kFits) return "";
    is_of_types |= fit == FilterFit::kTypes;
  }
  Names fields;
  for (const EventDescription* event : events)
    for (const FieldDescription& field : event->fields) fields.insert(field.name);
  const std::string subject =
      "filter of event " + Quote(rule.name) + ": no event that running programs offer for it has ";
  for (const std::string& text : {rule.filter, filter})
    for (const std::string& field : FieldsOfFilter(text))
      if (!fields.contains(field))
        return subject + "a field " + Quote(field) + Suggest(field, fields);
  return is_of_types ? subject + "fields of the types that it takes" : "";
}

std::string Check(const EventRule& rule, const std::string& filter,
                  const std::vector<EventDescription>& events) {
  Names names;
  Events matched;
  bool has_name = false;
  for (const EventDescription& event : events) {
    names.insert(event.name);
    has_name |= weft_glob_match_str(rule.name.c_str(), event.name.c_str());
    if (MatchesEvent(rule, event.name, event.loglevel)) matched.push_back(&event);
  }
  if (!has_name) {
    const bool is_literal = rule.name.find('*') == std::string::npos;
    return "event " + Quote(rule.name) + ": running programs offer " +
           (names.empty() ? "no tracepoints"
            : is_literal  ? "no such tracepoint"
                          : "no tracepoint that it matches") +
           Suggest(rule.name, names);
  }
  if (matched.empty()) return "";
  return CheckFields(rule, filter, matched);
}

}  // namespace

bool IsOfLibrary(std::string_view name) {
  return std::ranges::any_of(kLibraryProviders,
                             [&](std::string_view own) { return name.starts_with(own); });
}

std::span<const std::string_view> StatedumpFields() { return kStatedumpFields; }

bool MatchesStatedump(const EventRule& rule) {
  return MatchesEvent(rule, kStatedumpEvent, kStatedumpLevel);
}

bool MatchesEvent(const EventRule& rule, const std::string& name, std::int32_t loglevel) {
  const auto levels = rule.log_level.AdmittedLevels();
  const weft_match_rule match = {
      .pattern = rule.name.c_str(),
      .exclusion =
          [](const void* of, uint32_t i) {
            return (*static_cast<const std::vector<std::string>*>(of))[i].c_str();
          },
      .exclusions = &rule.exclude,
      .exclusion_count = static_cast<uint32_t>(rule.exclude.size()),
      .loglevel_min = levels.min,
      .loglevel_max = levels.max};
  return weft_match_event(&match, name.c_str(), loglevel);
}

std::string WhyNotOffered(const EventRule& rule, const std::string& filter,
                          const std::vector<EventDescription>& events) {
  if (IsOfLibrary(rule.name) || rule.name.starts_with(kFunctionEvents) || MatchesStatedump(rule))
    return "";
  return Check(rule, filter, events).substr(0, limits::kRuleProblem);
}

}  // namespace weft::api
