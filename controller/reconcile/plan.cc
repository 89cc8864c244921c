// SPDX-License-Identifier: Apache-2.0
// From a situation to a plan: finalizer, sessions, status, Events, in this order.
#include "controller/reconcile/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "controller/reconcile/trace_status.h"

namespace weft::controller {
namespace {

using api::ConditionStatus;
using api::TraceSession;

bool IsDrained(const TraceSession& session) {
  return api::IsTrue(session.status.conditions, api::kConditionDrained);
}

// What the agent says of the spec that is there now, not of an older one.
bool IsReady(const TraceSession& session) {
  return session.status.observed_generation >= session.metadata.generation &&
         api::IsTrue(session.status.conditions, api::kConditionReady);
}

std::string Join(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) out += " and " + std::to_string(names.size() - kMost) + " more";
  return out;
}

class Planner {
 public:
  explicit Planner(const Situation& situation)
      : s_(situation), trace_(situation.trace), selected_(SelectedPods(situation)) {}

  Plan Make() {
    plan_.status = trace_.status;
    plan_.status.observed_generation = trace_.metadata.generation;
    FindStage();
    PlanSessions();
    PlanFinalizer();
    FillStatus();
    Announce();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool Drains() const { return deleting_ || ended_; }
  [[nodiscard]] bool IsFinalized() const {
    return std::ranges::find(trace_.metadata.finalizers, kFinalizer) !=
           trace_.metadata.finalizers.end();
  }

  // Begin, end, and where the Trace is between them.
  void FindStage() {
    api::TraceStatus& status = plan_.status;
    deleting_ = !trace_.metadata.deletion_timestamp.empty();
    if (status.start_time.empty() && std::ranges::any_of(s_.sessions, IsReady))
      status.start_time = kube::FormatTime(s_.now);
    FindDeadline();
    if (const auto deadline = kube::ParseTime(status.deadline)) {
      ended_ = s_.now >= *deadline;
      if (!ended_) Again(*deadline);
    }
    ended_ = ended_ || !status.completion_time.empty();
  }

  // A spec that cannot be read has no duration either: what was decided stays.
  void FindDeadline() {
    if (!s_.problem.empty()) return;
    plan_.status.deadline.clear();
    const auto start = kube::ParseTime(plan_.status.start_time);
    if (!trace_.spec.duration || !start) return;
    const auto whole = std::chrono::ceil<std::chrono::seconds>(*trace_.spec.duration);
    plan_.status.deadline = kube::FormatTime(*start + whole);
  }

  void Again(kube::WallTime time) {
    plan_.again = plan_.again ? std::min(*plan_.again, time) : time;
  }

  void PlanSessions() {
    std::map<std::string, const TraceSession*> there;
    for (const TraceSession& session : s_.sessions) {
      if (s_.nodes.contains(session.spec.node_name)) {
        there.emplace(session.spec.node_name, &session);
        live_.push_back(&session);
      } else {
        plan_.remove.push_back(session.metadata.name);
      }
    }
    std::set<std::string> wanted;
    for (const auto& [node, session] : there) wanted.insert(node);
    if (!Drains() && s_.problem.empty()) {
      for (const PodFacts* pod : selected_) {
        if (s_.nodes.contains(pod->node)) wanted.insert(pod->node);
      }
    }
    for (const std::string& node : wanted) {
      const auto found = there.find(node);
      PlanSession(node, found == there.end() ? nullptr : found->second);
    }
  }

  void PlanSession(const std::string& node, const TraceSession* existing) {
    TraceSession session;
    session.metadata.name = api::SessionName(trace_.metadata.name, node);
    session.metadata.name_space = trace_.metadata.name_space;
    // A spec that cannot be acted on changes nothing of what goes on.
    session.spec = existing != nullptr && !s_.problem.empty() ? existing->spec : MakeSpec(node);
    session.spec.state = Drains() ? api::SessionState::kDraining : api::SessionState::kActive;
    if (existing == nullptr || !(existing->spec == session.spec)) {
      plan_.apply.push_back(std::move(session));
      waiting_for_.push_back(node);
    } else if (!IsReady(*existing)) {
      waiting_for_.push_back(node);
    }
    ++sessions_;
  }

  [[nodiscard]] api::SessionSpec MakeSpec(const std::string& node) const {
    return {.node_name = node,
            .trace_name = trace_.metadata.name,
            .trace_uid = trace_.metadata.uid,
            .trace_generation = trace_.metadata.generation,
            .relay = s_.relay,
            .deadline = plan_.status.deadline,
            .record = trace_.spec};
  }

  void PlanFinalizer() {
    for (const TraceSession* session : live_) {
      if (!IsDrained(*session)) not_drained_.push_back(session->spec.node_name);
    }
    if (!deleting_) {
      plan_.add_finalizer = !IsFinalized();
      return;
    }
    if (!IsFinalized()) return;
    const auto since = kube::ParseTime(trace_.metadata.deletion_timestamp);
    const bool too_late = !since || s_.now >= *since + kDrainLimit;
    plan_.remove_finalizer = not_drained_.empty() || too_late;
    if (!plan_.remove_finalizer) Again(*since + kDrainLimit);
    if (plan_.remove_finalizer && !not_drained_.empty())
      plan_.notes.push_back({.warning = true,
                             .reason = "NotDrained",
                             .text = "deleted before all events were delivered; nodes that did not "
                                     "answer in time: " +
                                     Join(not_drained_)});
  }

  void Set(std::string_view type, ConditionStatus value, std::string reason, std::string message) {
    SetCondition(plan_.status.conditions,
                 {.type = std::string(type),
                  .status = value,
                  .observed_generation = trace_.metadata.generation,
                  .reason = std::move(reason),
                  .message = std::move(message)},
                 s_.now);
  }

  void FillStatus() {
    api::TraceStatus& status = plan_.status;
    // Assigned with the first session.
    if (sessions_ > 0) status.relay = s_.relay.name;
    if (sessions_ > 0 && status.segments.empty())
      status.segments.push_back({.relay = s_.relay.name, .from = kube::FormatTime(s_.now)});
    if (s_.problem.empty()) status.pods = CountPods(s_, selected_);
    // A session that is gone took its counts with it; what was counted stays.
    const api::EventCounts counts = CountEvents(s_.sessions);
    if (counts.recorded + counts.discarded >= status.events.recorded + status.events.discarded)
      status.events = counts;

    const bool good = s_.problem.empty();
    Set(api::kConditionAccepted, good ? ConditionStatus::kTrue : ConditionStatus::kFalse,
        good ? "Valid" : "InvalidSpec", s_.problem);
    if (Drains()) {
      FillEnd();
    } else {
      FillReady();
    }
  }

  void FillEnd() {
    const bool drained = not_drained_.empty() && plan_.apply.empty();
    Set(api::kConditionDrained, drained ? ConditionStatus::kTrue : ConditionStatus::kFalse,
        drained ? "Drained" : "Draining", drained ? "" : "waiting for " + Join(not_drained_));
    Set(api::kConditionReady, ConditionStatus::kFalse, drained ? "Completed" : "Draining",
        deleting_ ? "the Trace is being deleted" : "its duration is over");
    plan_.status.phase = drained && ended_ ? api::Phase::kCompleted : api::Phase::kDraining;
    if (drained && ended_ && plan_.status.completion_time.empty())
      plan_.status.completion_time = kube::FormatTime(s_.now);
  }

  // Pods are there, and not one of them can be recorded.
  [[nodiscard]] bool NobodyHasTheLibrary() const {
    return trace_.spec.RecordsUser() && !selected_.empty() &&
           std::ranges::none_of(selected_, [](const PodFacts* pod) { return pod->has_library; });
  }

  void FillReady() {
    const bool good = s_.problem.empty();
    const bool no_library = NobodyHasTheLibrary();
    const bool ready = sessions_ > 0 && waiting_for_.empty() && !no_library;
    plan_.status.phase = !good && sessions_ == 0 ? api::Phase::kFailed
                         : !ready                ? api::Phase::kPending
                         : trace_.spec.paused    ? api::Phase::kPaused
                                                 : api::Phase::kRecording;
    if (!good && sessions_ == 0) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "InvalidSpec", "the spec is not accepted");
    } else if (selected_.empty()) {
      // Nodes that had such pods go on listening.
      Set(api::kConditionReady, ready ? ConditionStatus::kTrue : ConditionStatus::kFalse, "NoPods",
          "spec.pods matches no pod of the namespace");
      if (sessions_ == 0) plan_.status.phase = api::Phase::kPending;
    } else if (sessions_ == 0) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "NotScheduled",
          "no pod that spec.pods matches has a node yet");
    } else if (no_library) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "NothingTraced",
          "none of the " + std::to_string(selected_.size()) +
              " pods that spec.pods matches has weft's library; status.pods.skipped says why");
    } else if (!ready) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "WaitingForNodes",
          "waiting for " + Join(waiting_for_));
    } else {
      Set(api::kConditionReady, ConditionStatus::kTrue, trace_.spec.paused ? "Paused" : "Recording",
          "");
    }
  }

  // A change of reason is news; a Trace that begins with WaitingForNodes, as all do, is not.
  void Announce() {
    for (const api::Condition& now : plan_.status.conditions) {
      const api::Condition* before = api::FindCondition(trace_.status.conditions, now.type);
      if (before != nullptr && before->reason == now.reason) continue;
      if (now.reason == "WaitingForNodes" || now.reason == "Valid" || now.reason == "Draining" ||
          now.type == api::kConditionDrained)
        continue;
      if (now.type == api::kConditionReady && now.reason == "InvalidSpec") continue;
      plan_.notes.push_back(
          {.warning = now.reason == "NoPods" || now.reason == "NothingTraced" ||
                      now.reason == "InvalidSpec",
           .reason = now.reason,
           .text = now.message.empty() ? "the Trace is now: " + now.reason : now.message});
    }
  }

  const Situation& s_;
  const api::Trace& trace_;
  const std::vector<const PodFacts*> selected_;
  Plan plan_;
  bool deleting_ = false;
  bool ended_ = false;
  int sessions_ = 0;                       // that are there or will be
  std::vector<const TraceSession*> live_;  // whose node is there
  std::vector<std::string> waiting_for_;   // nodes
  std::vector<std::string> not_drained_;   // nodes
};

}  // namespace

Plan MakePlan(const Situation& situation) { return Planner(situation).Make(); }

bool DiffersBeyondCounts(const api::TraceStatus& a, const api::TraceStatus& b) {
  api::TraceStatus same_counts = a;
  same_counts.events = b.events;
  return !(same_counts == b);
}

}  // namespace weft::controller
