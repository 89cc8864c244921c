// SPDX-License-Identifier: Apache-2.0
// Counting pods and events.
#include "controller/reconcile/trace_status.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/api/event_counts.h"
#include "lib/api/limits.h"
#include "lib/api/selector.h"

namespace weft::controller {
namespace {

constexpr const char* kNotInjected = "NotInjected";
constexpr const char* kNoSuchContainer = "NoSuchContainer";
constexpr const char* kEphemeralContainer = "EphemeralContainer";
constexpr const char* kContainerNotInjected = "ContainerNotInjected";
constexpr const char* kNotAttached = "NotAttached";
constexpr std::string_view kNotServed =
    "the administrator of weft excluded the namespace (the chart's value "
    "webhook.namespaceSelector)";

bool IsServed(const Situation& situation) {
  return api::Matches(situation.served_namespaces, situation.name_space.labels);
}

// Whether the pod has a container that the Trace selects; `with_library`: one that has the library.
bool HasSelected(const PodFacts& pod, const Situation& situation, bool with_library) {
  const api::PodSelection& pods = situation.trace.spec.pods;
  return pods.containers.empty() || std::ranges::any_of(pod.containers, [&](const auto& container) {
           return (container.second || !with_library) &&
                  api::MatchesContainer(pods, container.first);
         });
}

bool NamesEphemeral(const PodFacts& pod, const Situation& situation) {
  return std::ranges::any_of(situation.trace.spec.pods.containers,
                             [&](const std::string& name) { return pod.ephemeral.contains(name); });
}

// The reason for which no container that the Trace selects in a pod has the library; "": one has.
std::string WhyWithout(const PodFacts& pod, const Situation& situation) {
  const NamespaceFacts& name_space = situation.name_space;
  if (!HasSelected(pod, situation, false))
    return NamesEphemeral(pod, situation) ? kEphemeralContainer : kNoSuchContainer;
  if (pod.has_library) return HasSelected(pod, situation, true) ? "" : kContainerNotInjected;
  if (pod.refuses_library || (!pod.wants_library && !name_space.wants_library))
    return "InjectionDisabled";
  return kNotInjected;
}

// Why nothing of a selected pod is recorded for user space, or nothing at all; "": the nodes say.
std::string WhySkipped(const PodFacts& pod, const Situation& situation) {
  std::string reason = WhyWithout(pod, situation);
  if (reason.empty() || !HasSelected(pod, situation, false)) return reason;
  // The kernel's events need no library, and nodes say what became of programs that they attach to.
  if (!situation.trace.spec.RecordsUser() || Attaches(situation)) return "";
  if (situation.trace.spec.user.attach && !IsServed(situation)) return kNotAttached;
  return reason;
}

// What the message about pods that are skipped for one reason names.
struct Named {
  std::set<std::string> restarts, containers;
};

void AddNames(const PodFacts& pod, const std::string& reason, Named& named) {
  if (!pod.restart.empty()) named.restarts.insert(pod.restart);
  for (const auto& [container, has_library] : pod.containers)
    if (has_library || reason != kContainerNotInjected) named.containers.insert(container);
}

std::string Join(const std::set<std::string>& names) {
  return controller::Join({names.begin(), names.end()});
}

std::string Explain(const std::string& reason, const Named& named, const Situation& situation) {
  if (reason == kNoSuchContainer)
    return "spec.pods.containers names no container of these pods; they have: " +
           Join(named.containers);
  if (reason == kEphemeralContainer)
    return "spec.pods.containers names ephemeral containers (kubectl debug) of these pods, which "
           "are not traced; they have beside them: " +
           Join(named.containers);
  if (!IsServed(situation)) return std::string(kNotServed);
  if (reason == kContainerNotInjected)
    return "of their containers only these have the library: " + Join(named.containers) +
           "; list all that should have it in the annotation weft.dev/containers of the pods, or "
           "of their template, and make the pods anew";
  const std::set<std::string>& restarts = named.restarts;
  if (reason == "InjectionDisabled")
    return "label the namespace or the pods weft.dev/inject: enabled, and restart the pods";
  const std::string& name_space = situation.trace.metadata.name_space;
  std::string text = "made before the library was there, or could not get it (see Events)";
  if (restarts.empty()) return text;
  text += "; to trace them: kubectl -n " + name_space + " rollout restart";
  for (const std::string& target : restarts) text += " " + target;
  return text.substr(0, api::limits::kMessage);
}

void Add(std::vector<api::SkippedPods>& all, const api::SkippedPods& more) {
  auto found = std::ranges::find(all, more.reason, &api::SkippedPods::reason);
  if (found == all.end()) {
    if (all.size() < api::limits::kReasons) all.push_back(more);
    return;
  }
  found->count += more.count;
  for (const std::string& name : more.names) {
    if (found->names.size() < api::limits::kSkippedPodNames) found->names.push_back(name);
  }
}

// Returns what a node reports without the pods of the set `explained`, and at most `most` pods. For
// a while a node reports of an older order: the controller explains pods itself as soon as their
// namespace gets a label that excludes it, and no pod may be there twice.
std::vector<api::SkippedPods> LeaveOut(std::vector<api::SkippedPods> reported,
                                       const std::set<std::string>& explained, std::int64_t most) {
  for (api::SkippedPods& pods : reported) {
    pods.count -= static_cast<std::int64_t>(std::erase_if(
        pods.names, [&](const std::string& name) { return explained.contains(name); }));
    pods.count = std::clamp<std::int64_t>(pods.count, 0, most);  // an agent may report nonsense
    most -= pods.count;
  }
  std::erase_if(reported, [](const api::SkippedPods& pods) { return pods.count == 0; });
  return reported;
}

}  // namespace

bool MissedTheLibrary(const PodFacts& pod, const Situation& situation) {
  return IsServed(situation) && WhyWithout(pod, situation) == kNotInjected;
}

bool CanBeTraced(const PodFacts& pod, const Situation& situation) {
  return situation.trace.spec.RecordsKernel() ? HasSelected(pod, situation, false)
                                              : WhySkipped(pod, situation).empty();
}

bool IsMatchedByAgents(const PodFacts& pod, const Situation& situation) {
  if (!situation.trace.spec.RecordsUser() || Attaches(situation))
    return CanBeTraced(pod, situation);
  return WhyWithout(pod, situation).empty();
}

std::string DescribeUnknownContainers(const Situation& situation,
                                      const std::vector<const PodFacts*>& selected) {
  std::set<std::string> unknown, ephemeral;
  for (const std::string& name : situation.trace.spec.pods.containers) {
    const auto has = [&](const PodFacts* pod) { return pod->containers.contains(name); };
    if (std::ranges::any_of(selected, has)) continue;
    const auto was_added = [&](const PodFacts* pod) { return pod->ephemeral.contains(name); };
    (std::ranges::any_of(selected, was_added) ? ephemeral : unknown).insert(name);
  }
  std::string text;
  if (!unknown.empty()) text = "no pod has a container of this name: " + Join(unknown);
  if (!ephemeral.empty())
    text += (text.empty() ? "" : "; ") + std::string("ephemeral containers are not traced: ") +
            Join(ephemeral);
  return text;
}

std::string WhyNotAttached(const Situation& situation) {
  if (!situation.name_space.is_known) return "the namespace is not known yet";
  if (situation.name_space.refuses_library)
    return "the namespace has the label weft.dev/inject: disabled";
  return IsServed(situation) ? "" : std::string(kNotServed);
}

bool Attaches(const Situation& situation) {
  if (!situation.trace.spec.user.attach || !WhyNotAttached(situation).empty()) return false;
  const auto is_allowed = [](const api::TraceSession& session) {
    const api::Condition* said =
        api::FindCondition(session.status.conditions, api::kConditionProcessesAttached);
    return said == nullptr || said->reason != kNotAllowed;
  };
  return situation.sessions.empty() || std::ranges::any_of(situation.sessions, is_allowed);
}

std::vector<const PodFacts*> SelectedPods(const Situation& situation) {
  std::vector<const PodFacts*> out;
  if (IsClusterWide(situation.trace)) return out;
  for (const PodFacts& pod : situation.pods) {
    if (!pod.is_over && api::Matches(situation.trace.spec.pods.selector, pod.labels))
      out.push_back(&pod);
  }
  return out;
}

api::PodCounts CountPods(const Situation& situation, const std::vector<const PodFacts*>& selected) {
  api::PodCounts counts;
  counts.matched = static_cast<std::int64_t>(selected.size());
  std::map<std::string, Named> named;           // by reason
  std::set<std::string> explained;              // names of the pods that are skipped here
  std::map<std::string, std::int64_t> on_node;  // how many others there are
  std::vector<api::SkippedPods> skipped;
  for (const PodFacts* pod : selected) {
    const std::string reason = WhySkipped(*pod, situation);
    if (reason.empty()) {
      ++on_node[pod->node];
      continue;
    }
    explained.insert(pod->name);
    AddNames(*pod, reason, named[reason]);
    Add(skipped, {.reason = reason, .count = 1, .names = {pod->name}});
  }
  for (api::SkippedPods& pods : skipped)
    pods.message = Explain(pods.reason, named[pods.reason], situation);
  for (const api::TraceSession& session : situation.sessions) {
    counts.traced += session.status.pods.traced;
    for (const api::SkippedPods& pods :
         LeaveOut(session.status.pods.skipped, explained, on_node[session.spec.node_name]))
      Add(skipped, pods);
  }
  std::ranges::sort(skipped, {}, &api::SkippedPods::reason);
  counts.skipped = std::move(skipped);
  return counts;
}

bool IsDrained(const api::TraceSession& session) {
  return api::IsTrue(session.status.conditions, api::kConditionDrained);
}

bool IsRemoved(const api::RemovedSessions& removed, const api::TraceSession& session) {
  return std::ranges::find(removed.uids, session.metadata.uid) != removed.uids.end();
}

// A uid is forgotten only for another one that needs its place: an informer that lags behind may
// still show its session.
bool Remove(api::RemovedSessions& removed, const api::TraceSession& session,
            const std::vector<api::TraceSession>& sessions) {
  if (removed.uids.size() >= api::limits::kRemovedSessions) {
    const auto is_over = [&](const std::string& uid) {
      return std::ranges::none_of(sessions,
                                  [&](const auto& other) { return other.metadata.uid == uid; });
    };
    const auto oldest = std::ranges::find_if(removed.uids, is_over);
    if (oldest == removed.uids.end()) return false;
    removed.uids.erase(oldest);
  }
  api::EventCounts last = session.status.events;
  if (!IsDrained(session)) api::LoseInFlight(last, "node", "gone");
  api::Add(removed.events, last);
  api::SortReasons(removed.events);
  removed.uids.push_back(session.metadata.uid);
  return true;
}

api::EventCounts CountEvents(const std::vector<api::TraceSession>& sessions,
                             const api::RemovedSessions& removed) {
  api::EventCounts sum = removed.events;
  for (const api::TraceSession& session : sessions) {
    if (!IsRemoved(removed, session)) api::Add(sum, session.status.events);
  }
  api::SortReasons(sum);
  return sum;
}

std::string DescribeNotOffered(const std::vector<api::EventRule>& rules,
                               const std::vector<const api::TraceSession*>& sessions) {
  std::vector<const std::vector<api::EventRuleState>*> nodes;
  for (const api::TraceSession* session : sessions) {
    const std::vector<api::EventRuleState>& states = session->status.event_rules;
    // What an agent reports of an older spec has other rules. An older agent reports none.
    if (session->status.observed_generation == session->metadata.generation &&
        std::ranges::equal(states, rules, {}, &api::EventRuleState::event, &api::EventRule::name))
      nodes.push_back(&states);
    else if (session->status.pods.traced > 0)
      return "";
  }
  std::string text;
  for (std::size_t i = 0; i < rules.size() && text.size() < api::limits::kMessage; ++i) {
    std::string problem;
    bool is_offered = false;
    for (const auto* states : nodes) {
      const std::string& one = states->at(i).problem;
      is_offered |= one.empty();
      // The longest one names the most of what there is.
      if (one.size() > problem.size()) problem = one;
    }
    if (!is_offered && !problem.empty()) text += (text.empty() ? "" : "; ") + problem;
  }
  return text.substr(0, api::limits::kMessage);
}

void SetCondition(std::vector<api::Condition>& conditions, api::Condition condition,
                  kube::WallTime now) {
  auto found = std::ranges::find(conditions, condition.type, &api::Condition::type);
  const bool same = found != conditions.end() && found->status == condition.status;
  condition.last_transition_time = same ? found->last_transition_time : kube::FormatTime(now);
  if (found == conditions.end()) {
    conditions.push_back(std::move(condition));
  } else {
    *found = std::move(condition);
  }
}

}  // namespace weft::controller
