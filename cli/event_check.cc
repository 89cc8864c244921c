// SPDX-License-Identifier: Apache-2.0
// See event_check.h. Pure.
#include "cli/event_check.h"

#include <algorithm>
#include <iterator>

#include "lib/api/filters.h"
#include "lib/api/nearest.h"
#include "lib/api/rule_check.h"
#include "lib/event/match.h"

namespace weft::cli {
namespace {

class Checker {
 public:
  Checker(const Offered& offered, const std::string& program)
      : offered_(offered),
        program_(program),
        offers_(program + " offers"),
        names_(offered.Names()) {}

  EventCheck Run(const std::vector<api::Trace>& traces) {
    for (const api::Trace& trace : traces) {
      for (const api::EventRule& rule : trace.spec.user.events) {
        if (api::IsOfLibrary(rule.name)) continue;
        CheckName(rule);
        CheckFields(rule.filter, {&rule}, true);
      }
      CheckTraceFilter(trace.spec);
    }
    return std::move(check_);
  }

 private:
  void CheckName(const api::EventRule& rule) {
    if (std::ranges::any_of(names_, [&](const std::string& name) {
          return weft_glob_match_str(rule.name.c_str(), name.c_str());
        }))
      return;
    const bool literal = rule.name.find('*') == std::string::npos;
    const std::vector<std::string_view> views(names_.begin(), names_.end());
    Add(api::NoEventOffered(rule, offers_), rule.name, views, literal);
  }

  // Checks the common filter of a Trace. Reports a field that only some events have for each rule
  // without it. A field that no event has is an error if all rules are known and the Trace records
  // nothing of the kernel, where events have other fields.
  void CheckTraceFilter(const api::TraceSpec& spec) {
    bool all_known = !spec.RecordsKernel();
    Rules rules;
    for (const api::EventRule& rule : spec.user.events) {
      if (api::IsOfLibrary(rule.name) || EventsOf({&rule}).empty())
        all_known = false;
      else
        rules.push_back(&rule);
    }
    const size_t before = check_.problems.size();
    CheckFields(spec.filter, rules, all_known);
    if (check_.problems.size() != before) return;
    for (const api::EventRule* rule : rules) CheckFields(spec.filter, {rule}, false);
  }

  using Rules = std::vector<const api::EventRule*>;

  // Checks that the program's events for these rules have each of the filter's fields,
  // and that one event has all of them in types that the filter accepts.
  void CheckFields(const std::string& filter, const Rules& rules, bool wrong) {
    if (filter.empty()) return;
    const std::vector<const EventDescription*> events = EventsOf(rules);
    if (events.empty()) return;
    const bool means_statedump =
        std::ranges::any_of(rules, [](const auto* rule) { return api::MatchesStatedump(*rule); });
    std::vector<std::string_view> fields;
    if (means_statedump) std::ranges::copy(api::StatedumpFields(), std::back_inserter(fields));
    const api::EventFilter one(filter);
    const api::FilterLack lack = api::LackOfFilters({&one, 1}, events, fields);
    for (const EventDescription* event : events)
      for (const FieldDescription& field : event->fields) fields.push_back(field.name);
    for (const std::string& field : lack.fields)
      Add(api::NoFieldOffered(rules, offers_, field), field, fields, wrong);
    if (lack.types && !means_statedump)
      Add(api::NoTypesOffered(rules, offers_) + ": " + filter, "", {}, wrong);
  }

  [[nodiscard]] std::vector<const EventDescription*> EventsOf(const Rules& rules) const {
    std::vector<const EventDescription*> events;
    for (const OfferedBy& file : offered_.files)
      for (const EventDescription& event : file.events)
        if (std::ranges::any_of(rules, [&](const auto* rule) {
              return api::MatchesEvent(*rule, event.name, event.loglevel);
            }))
          events.push_back(&event);
    return events;
  }

  void Add(std::string line, const std::string& name,
           const std::vector<std::string_view>& candidates, bool wrong) {
    const std::string_view nearest = api::Nearest(name, candidates);
    if (!nearest.empty())
      line += ", did you mean \"" + std::string(nearest) + "\"?";
    else
      line += " (see: weft list --fields " + program_ + ")";
    check_.problems.push_back(std::move(line));
    check_.is_wrong |= wrong;
  }

  const Offered& offered_;
  const std::string& program_;
  const std::string offers_;  // with its verb
  const std::vector<std::string> names_;
  EventCheck check_;
};

}  // namespace

EventCheck CheckEvents(const std::vector<api::Trace>& traces, const Offered& offered,
                       const std::string& program) {
  EventCheck check;
  if (std::ranges::none_of(traces, [](const api::Trace& t) { return t.spec.RecordsUser(); }))
    return check;
  if (offered.is_static) {
    check.problems.push_back(
        program +
        " is statically linked: libweft.so cannot be loaded into it, only "
        "programs that it starts are recorded; once it runs, weft record --pid "
        "records it, as root");
    return check;
  }
  if (std::ranges::all_of(traces, [](const api::Trace& t) { return t.spec.user.events.empty(); }))
    return check;
  if (offered.events() == 0) {
    check.problems.push_back(
        program +
        " offers no tracepoints in its files; what it loads later and programs "
        "that it starts are recorded");
    return check;
  }
  return Checker(offered, program).Run(traces);
}

}  // namespace weft::cli
