// SPDX-License-Identifier: Apache-2.0
// See event_part.h.
#include "node-agent/agent/cluster/event_part.h"

#include <algorithm>
#include <utility>

#include "lib/api/rule_check.h"
#include "lib/base/background.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/cgroup.h"
#include "node-agent/agent/cluster/event_search.h"

namespace weft::agent {
namespace {

// `containers`: their ids.
RuleVerdicts::Look LookAt(const api::TraceSpec& spec, const std::set<std::string>& containers) {
  const OfferedBySome offered = SearchEvents([&](int32_t pid) {
    const auto place = PlaceOf(pid);
    return place && containers.contains(place->container_id);
  });
  RuleVerdicts::Look look{.processes = offered.processes, .is_complete = offered.is_complete};
  for (const api::EventRule& rule : spec.user.events)
    look.problems.push_back(api::WhyNotOffered(rule, spec.filter, offered.events));
  return look;
}

// The pause between two looks. A Trace that ends soon is looked at sooner, so that its status still
// says which rules are of no use.
std::chrono::nanoseconds IntervalOf(const api::TraceSpec& spec) {
  const std::chrono::nanoseconds most = kEventInterval;
  return spec.duration ? std::min(most, *spec.duration / kLooksOfDuration) : most;
}

bool IsWantedBy(const Session& session) {
  return session.order->spec.state == api::SessionState::kActive && !session.is_cluster_wide() &&
         !session.order->spec.record.user.events.empty();
}

}  // namespace

void RuleVerdicts::Take(Look look) {
  if (look.processes == 0) return;
  if (look.is_complete) ++looks_;
  rules_.resize(look.problems.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    rules_[i].is_offered |= look.problems[i].empty();
    if (look.is_complete) rules_[i].problem = std::move(look.problems[i]);
  }
}

bool RuleVerdicts::AllOffered() const {
  return !rules_.empty() && std::ranges::all_of(rules_, &Rule::is_offered);
}

std::vector<std::string> RuleVerdicts::Problems() const {
  std::vector<std::string> problems;
  if (!AllOffered() && looks_ < kLooksUntilNotOffered) return problems;
  for (const Rule& rule : rules_) problems.push_back(rule.is_offered ? "" : rule.problem);
  return problems;
}

bool EventPart::Search::IsGoingOn() const { return look.valid() && !IsDone(look); }

void EventPart::Search::Take(int64_t now_ns) {
  verdicts.Take(look.get());
  const auto rest =
      std::max(IntervalOf(spec), kEventRest * std::chrono::nanoseconds(now_ns - began_ns));
  again_ns = now_ns + rest.count();
}

bool EventPart::IsDue(const Search& search, int64_t now_ns) const {
  if (search.look.valid()) return !search.IsGoingOn();
  return !search.verdicts.AllOffered() && now_ns >= search.again_ns &&
         std::ranges::none_of(searches_, [&](const auto& entry) {
           return entry.second.name_space == search.name_space && entry.second.IsGoingOn();
         });
}

std::set<std::string> EventPart::ContainersOf(const Session& session) const {
  std::set<std::string> ids;
  for (const SessionChannel& channel : session.channels) {
    if (channel.of_kernel() || channel.phase != ChannelPhase::kOn || channel.paused) continue;
    const auto pod = pods_.all().find(channel.definition.pod_uid);
    if (pod == pods_.all().end()) continue;
    for (const auto& [id, name] : pod->second.facts.ids)
      if (ContainerKey(pod->first, name) == channel.container) ids.insert(id);
  }
  return ids;
}

void EventPart::Begin(Search& search, const Session& session, int64_t now_ns) {
  search.began_ns = now_ns;
  search.again_ns = now_ns + IntervalOf(search.spec).count();
  std::set<std::string> containers = ContainersOf(session);
  if (containers.empty()) return;
  search.look = InBackground([spec = search.spec, containers = std::move(containers)] {
    return LookAt(spec, containers);
  });
}

void EventPart::Settle(const std::string& uid, Session& session) {
  if (!IsWantedBy(session)) return session.rule_problems.clear();
  const api::TraceSpec& spec = session.order->spec.record;
  Search& search = searches_[uid];
  const bool has_other_rules =
      search.spec.user.events != spec.user.events || search.spec.filter != spec.filter;
  // At once, although a search for the rules of before may go on: their problems are not of these.
  if (has_other_rules) session.rule_problems.clear();
  if (search.IsGoingOn()) return;
  if (has_other_rules) search = {.name_space = session.order->metadata.name_space, .spec = spec};
  const int64_t now_ns = MonotonicNow();
  if (search.look.valid()) search.Take(now_ns);
  session.rule_problems = search.verdicts.Problems();
  if (IsDue(search, now_ns)) Begin(search, session, now_ns);
}

bool EventPart::Poll(int64_t now_ns) {
  std::erase_if(searches_, [&](const auto& entry) {
    const Session* session = agent_.parts().sessions.Find(entry.first);
    return (session == nullptr || !IsWantedBy(*session)) && !entry.second.IsGoingOn();
  });
  return std::ranges::any_of(searches_,
                             [&](const auto& entry) { return IsDue(entry.second, now_ns); });
}

}  // namespace weft::agent
