// SPDX-License-Identifier: Apache-2.0
// Checks rules of spec.user.events against the events that programs offer. Names of events and
// fields are foreign bytes. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_RULE_CHECK_H_
#define WEFT_LIB_API_RULE_CHECK_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/filters.h"
#include "lib/api/trace.h"
#include "lib/event/description.h"

namespace weft::api {

// Is it an event, or a pattern of events, that libweft.so itself provides in every process? No
// program's file offers these.
bool IsOfLibrary(std::string_view name);

// The state dump of libweft.so, which a pattern may match, too (ust-injector/preload/statedump.c).
std::span<const std::string_view> StatedumpFields();
bool MatchesStatedump(const EventRule& rule);

// Does the rule match the event, by its name, its exclusions and its log level?
bool MatchesEvent(const EventRule& rule, const std::string& name, std::int32_t loglevel);

// What filters need and no event has.
struct FilterLack {
  std::vector<std::string> fields;  // that no event has, in the filters' order
  bool types = false;               // no event has the fields in types that the filters take
};
// One event must pass all of the filters. `also`: fields that the filters may name besides.
FilterLack LackOfFilters(std::span<const EventFilter> filters,
                         std::span<const EventDescription* const> events,
                         std::span<const std::string_view> also = {});

// Sentences about what a program offers, without their ends, which say what to do. `offers` is the
// program with the verb: "running programs offer".
std::string NoEventOffered(const EventRule& rule, std::string_view offers);
std::string NoFieldOffered(std::span<const EventRule* const> rules, std::string_view offers,
                           std::string_view field);
std::string NoTypesOffered(std::span<const EventRule* const> rules, std::string_view offers);

// Returns what is wrong with the rule if programs offer these events and no others; "": nothing.
// Either no event has its name, or none that it matches has a field that its filter or `filter`,
// the common one of the Trace, names. The text is printable ASCII of at most limits::kRuleProblem
// bytes, and does not depend on the order of `events`.
std::string WhyNotOffered(const EventRule& rule, const std::string& filter,
                          const std::vector<EventDescription>& events);

}  // namespace weft::api

#endif  // WEFT_LIB_API_RULE_CHECK_H_
