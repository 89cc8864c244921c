// SPDX-License-Identifier: Apache-2.0
// See event_list.h.
#include "node-agent/agent/session/event_list.h"

#include <algorithm>

#include "lib/control/ruleset.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/session/filter_fit.h"

namespace weft::agent {
namespace {

// Returns a filter in which both must pass. Either may end in a comment, hence the line ends.
std::string Both(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  return "(" + a + "\n) && (" + b + "\n)";
}

// Joins the filters of rules, one of which suffices.
std::string Join(const EventList::Choice& rules) {
  std::string joined;
  for (const EventList::Rule* rule : rules) {
    if (rule->filter.empty()) return "";
    joined += (joined.empty() ? "(" : " || (") + rule->filter + "\n)";
  }
  return joined;
}

}  // namespace

void Absences::Note(const std::string& what, const std::string& event, const std::string& hint) {
  const auto [at, is_new] = of_.try_emplace(what);
  if (is_new) at->second.hint = hint;
  if (at->second.names.size() < kMaxNamedEvents) at->second.names.push_back(event);
  ++at->second.count;
}

std::string Absences::Subject(const Events& events) {
  std::string names;
  for (const std::string& name : events.names)
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  const size_t others = events.count - events.names.size();
  return (events.count == 1 ? "event " : "events ") + names +
         (others == 0 ? "" : " and " + std::to_string(others) + " more");
}

std::string Absences::First() const {
  const auto& [what, events] = *of_.begin();
  return Subject(events) + ": " + what + events.hint;
}

void Absences::Tell(const std::string& end, std::vector<std::string>& to) const {
  size_t told = 0;
  for (const auto& [what, events] : of_) {
    if (told++ < kMaxAbsences) to.push_back(Subject(events).append(": ").append(what).append(end));
  }
  if (told > kMaxAbsences) to.push_back(std::to_string(told - kMaxAbsences) + " more like these");
}

Result<EventList::Rule*> EventList::Ask(const char* kind, const std::string& name,
                                        const std::string& filter) {
  Rule rule{.what = std::string(kind) + " \"" + name + "\"",
            .filter = filter,
            .by_name = !control::HasWildcard(name)};
  WEFT_ASSIGN(rule.program, CompileFilters("", filter));
  if (of_tenant_) {
    WEFT_ASSIGN(const std::vector<uint8_t> whole, CompileFilters(spec_.filter, filter));
    for (const std::string& context : ContextsOf(whole))
      if (const std::string why = WhyNotForTenants(context); !why.empty())
        return Fail(ErrorCode::kInvalid, rule.what + ": its filter: " + why);
  }
  return &rules_.emplace_back(std::move(rule));
}

Result<EventList::Choice> EventList::Fitting(const Choice& choice,
                                             const kernel::Resolved& resolved) {
  Choice fitting;
  for (Rule* rule : choice) {
    WEFT_ASSIGN(const FilterFit fit, FitFilter(rule->program, resolved.description));
    rule->means_event |= fit.lacks.empty();
    if (fit.lacks.empty())
      fitting.push_back(rule);
    else
      rule->absences.Note(fit.lacks, resolved.name, fit.hint);
  }
  return fitting;
}

Status EventList::Add(const Choice& choice, Result<kernel::Resolved> resolved,
                      const std::shared_ptr<const UniqueFd>& file) {
  if (!resolved) {
    why_ = resolved.error().message;
    if (std::ranges::any_of(choice, &Rule::by_name)) Refuse(why_);
    return {};
  }
  WEFT_ASSIGN(const Choice fitting, Fitting(choice, *resolved));
  if (fitting.empty()) return {};
  WEFT_ASSIGN(const std::vector<uint8_t> of_all, CompileFilters("", spec_.filter));
  WEFT_ASSIGN(const FilterFit fit, FitFilter(of_all, resolved->description));
  if (!fit.lacks.empty()) {
    of_all_.Note(fit.lacks, resolved->name, fit.hint);
    return {};
  }
  for (const std::string& remark : resolved->remarks) left_out_.Note(remark, resolved->name);
  const bool by_name = std::ranges::any_of(fitting, &Rule::by_name);
  for (const std::string& field : resolved->left_out)
    left_out_.Note("without field " + field, resolved->name);
  if (by_name)
    for (const std::string& field : resolved->withheld)
      left_out_.Note("without field " + field, resolved->name);
  kernel::Event event{.kind = resolved->kind,
                      .name = resolved->target,
                      .offset = resolved->offset,
                      .file = file,
                      .semaphore = resolved->semaphore,
                      .number = resolved->number,
                      .table = resolved->table,
                      .known = std::move(resolved->known),
                      .subjects = resolved->subjects,
                      .description = std::move(resolved->description),
                      .fetch = std::move(resolved->fetch)};
  WEFT_ASSIGN(event.filter, CompileFilters(spec_.filter, Both(resolved->condition, Join(fitting))));
  to_.kernel_events.push_back(std::move(event));
  return {};
}

void EventList::AddState(kernel::Resolved resolved) {
  to_.kernel_events.push_back({.kind = resolved.kind,
                               .number = resolved.number,
                               .description = std::move(resolved.description),
                               .fetch = std::move(resolved.fetch)});
}

void EventList::Refuse(const std::string& why) {
  to_.notices.push_back(why);
  const bool is_new = std::ranges::find(refused_, why) == refused_.end();
  if (is_new && refused_.size() < kMaxAbsences) refused_.push_back(why);
}

Status EventList::CheckRules() {
  for (const Rule& rule : rules_) {
    if (rule.absences.empty()) continue;
    if (!rule.means_event)
      return Fail(ErrorCode::kInvalid, rule.what + ": its filter: " + rule.absences.First());
    rule.absences.Tell(", which the filter of " + rule.what + " asks for: not recorded for it",
                       to_.notices);
  }
  of_all_.Tell(", which spec.filter asks for: not recorded", to_.notices);
  left_out_.Tell("", to_.notices);
  return {};
}

Status EventList::CheckNotEmpty() const {
  if (!to_.kernel_events.empty()) return {};
  if (!of_all_.empty()) return Fail(ErrorCode::kInvalid, "spec.filter: " + of_all_.First());
  std::string all;
  for (const std::string& why : refused_) all += (all.empty() ? "" : "; ") + why;
  return Fail(ErrorCode::kUnsupported, all.empty() ? why_ : all);
}

}  // namespace weft::agent
