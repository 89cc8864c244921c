// SPDX-License-Identifier: Apache-2.0
// See rule_check.h.
#include "lib/api/rule_check.h"

#include <algorithm>
#include <set>

#include "lib/api/diagnostic.h"
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

// All filters.
FilterFit FitAll(std::span<const EventFilter> filters, const EventDescription& event) {
  for (const EventFilter& filter : filters) {
    const FilterFit fit = filter.Fit(event);
    if (fit != FilterFit::kFits) return fit;
  }
  return FilterFit::kFits;
}

Names FieldsOf(std::span<const EventDescription* const> events) {
  Names fields;
  for (const EventDescription* event : events)
    for (const FieldDescription& field : event->fields) fields.insert(field.name);
  return fields;
}

std::string NothingOffered(std::span<const EventRule* const> rules, std::string_view offers) {
  std::string names;
  for (const EventRule* rule : rules) names += (names.empty() ? "" : ", ") + Quote(rule->name);
  return "filter of event " + names + ": no event that " + std::string(offers) + " for it has ";
}

constexpr std::string_view kOffers = "running programs offer";

std::string CheckFields(const EventRule& rule, const std::string& filter, const Events& events) {
  std::vector<EventFilter> filters;
  for (const std::string& text : {rule.filter, filter})
    if (!text.empty()) filters.emplace_back(text);
  const FilterLack lack = LackOfFilters(filters, events);
  const EventRule* const rules[] = {&rule};
  if (!lack.fields.empty()) {
    const std::string& field = lack.fields.front();
    return NoFieldOffered(rules, kOffers, field) + Suggest(field, FieldsOf(events));
  }
  return lack.types ? NoTypesOffered(rules, kOffers) : "";
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
  if (events.empty())
    return "event " + Quote(rule.name) + ": " + std::string(kOffers) + " no tracepoints";
  if (!has_name) return NoEventOffered(rule, kOffers) + Suggest(rule.name, names);
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

FilterLack LackOfFilters(std::span<const EventFilter> filters,
                         std::span<const EventDescription* const> events,
                         std::span<const std::string_view> also) {
  FilterLack lack;
  for (const EventDescription* event : events) {
    const FilterFit fit = FitAll(filters, *event);
    if (fit == FilterFit::kFits) return {};
    lack.types |= fit == FilterFit::kTypes;
  }
  Names fields = FieldsOf(events);
  fields.insert(also.begin(), also.end());
  for (const EventFilter& filter : filters)
    for (const std::string& field : filter.fields())
      if (!fields.contains(field)) lack.fields.push_back(field);
  lack.types &= lack.fields.empty();
  return lack;
}

std::string NoEventOffered(const EventRule& rule, std::string_view offers) {
  const bool is_literal = rule.name.find('*') == std::string::npos;
  return "event " + Quote(rule.name) + ": " + std::string(offers) +
         (is_literal ? " no such tracepoint" : " no tracepoint that it matches");
}

std::string NoFieldOffered(std::span<const EventRule* const> rules, std::string_view offers,
                           std::string_view field) {
  return NothingOffered(rules, offers) + "a field " + Quote(field);
}

std::string NoTypesOffered(std::span<const EventRule* const> rules, std::string_view offers) {
  return NothingOffered(rules, offers) + "fields of the types that it takes";
}

std::string WhyNotOffered(const EventRule& rule, const std::string& filter,
                          const std::vector<EventDescription>& events) {
  if (IsOfLibrary(rule.name) || rule.name.starts_with(kFunctionEvents) || MatchesStatedump(rule))
    return "";
  return Check(rule, filter, events).substr(0, limits::kRuleProblem);
}

}  // namespace weft::api
