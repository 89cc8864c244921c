// SPDX-License-Identifier: Apache-2.0
// From a situation to a plan: finalizer, sessions, status, Events, in this order.
#include "controller/reconcile/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "controller/reconcile/trace_status.h"
#include "lib/api/event_counts.h"
#include "lib/api/limits.h"
#include "lib/api/selector.h"
#include "lib/kube/library.h"
#include "lib/store/store.h"

namespace weft::controller {
namespace {

using api::ConditionStatus;
using api::TraceSession;

// What the agent says of the spec that is there now, not of an older one.
bool IsReady(const TraceSession& session) {
  return session.status.observed_generation >= session.metadata.generation &&
         api::IsTrue(session.status.conditions, api::kConditionReady);
}

// The node, and what its agent says of the spec as it is now.
std::string WithReason(const TraceSession& session) {
  std::string out = session.spec.node_name;
  const auto* ready = api::FindCondition(session.status.conditions, api::kConditionReady);
  if (ready == nullptr || session.status.observed_generation < session.metadata.generation)
    return out;
  out += " (" + ready->reason;
  if (!ready->message.empty()) out += ": " + ready->message;
  return out + ")";
}

class Planner {
 public:
  explicit Planner(const Situation& situation)
      : s_(situation),
        trace_(situation.trace),
        cluster_wide_(IsClusterWide(trace_)),
        selected_(SelectedPods(situation)),
        selected_nodes_(SelectedNodes()) {}

  Plan Make() {
    plan_.status = trace_.status;
    plan_.status.observed_generation = trace_.metadata.generation;
    FindStage();
    PlanSessions();
    PlanEvictions();
    PlanFinalizer();
    FillStatus();
    Announce();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool Drains() const { return deleting_ || ended_ || s_.uninstalling_since; }

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
      const bool is_over = !s_.nodes.contains(session.spec.node_name) ||
                           IsRemoved(plan_.status.removed_sessions, session);
      if (is_over && Remove(session)) continue;
      there.emplace(session.spec.node_name, &session);
      live_.push_back(&session);
    }
    std::set<std::string> wanted;
    if (!Drains() && s_.problem.empty()) wanted = selected_nodes_;
    for (const auto& [node, session] : there) wanted.insert(node);
    for (const std::string& node : wanted) {
      const auto found = there.find(node);
      const TraceSession* existing = found == there.end() ? nullptr : found->second;
      if (existing != nullptr && !s_.nodes.contains(node)) continue;  // it waits for its removal
      if (existing == nullptr && removed_nodes_.contains(node)) {
        // A new session has the same name as the one that goes.
        waiting_for_.push_back(node);
        ++sessions_;
      } else if (existing != nullptr && Leaves(*existing)) {
        PlanLeaving(*existing);
      } else {
        PlanSession(node, existing);
      }
    }
  }

  // Those that the spec means, or that have pods that it means.
  [[nodiscard]] std::set<std::string> SelectedNodes() const {
    std::set<std::string> nodes;
    for (const PodFacts* pod : selected_) {
      if (s_.nodes.contains(pod->node)) nodes.insert(pod->node);
    }
    if (!cluster_wide_) return nodes;
    for (const auto& [name, node] : s_.nodes) {
      if (api::Matches(trace_.spec.nodes.selector, node.labels)) nodes.insert(name);
    }
    return nodes;
  }

  // Plans to remove a session, with its counts kept. False: it has to wait.
  bool Remove(const TraceSession& session) {
    api::RemovedSessions& removed = plan_.status.removed_sessions;
    if (!IsRemoved(removed, session) && !controller::Remove(removed, session, s_.sessions))
      return false;
    plan_.remove.push_back(session.metadata.name);
    removed_nodes_.insert(session.spec.node_name);
    return true;
  }

  // A node that a ClusterTrace does not mean any more ends its session. (One that had a Trace's
  // pods will have others.) A session that someone deleted ends, too. What drains is never turned
  // back: a new session follows it.
  [[nodiscard]] bool Leaves(const TraceSession& session) const {
    if (!session.metadata.deletion_timestamp.empty()) return true;
    return cluster_wide_ && !Drains() && s_.problem.empty() &&
           (!selected_nodes_.contains(session.spec.node_name) ||
            session.spec.state == api::SessionState::kDraining);
  }

  void PlanLeaving(const TraceSession& existing) {
    if (selected_nodes_.contains(existing.spec.node_name)) {
      waiting_for_.push_back(existing.spec.node_name +
                             " (its session ends, and another one follows)");
      ++sessions_;
    }
    if (IsDrained(existing)) {
      (void)Remove(existing);
    } else if (existing.spec.state != api::SessionState::kDraining) {
      TraceSession session;
      session.metadata.name = existing.metadata.name;
      session.metadata.name_space = existing.metadata.name_space;
      // An object that is being deleted gets no new finalizer.
      if (HasFinalizer(existing.metadata)) session.metadata.finalizers = {std::string(kFinalizer)};
      session.spec = existing.spec;
      session.spec.state = api::SessionState::kDraining;
      plan_.apply.push_back(std::move(session));
    }
  }

  void PlanSession(const std::string& node, const TraceSession* existing) {
    TraceSession session;
    session.metadata.name = api::SessionName(trace_.metadata.name, node, cluster_wide_);
    session.metadata.name_space = SessionNamespace(s_);
    // A spec that cannot be acted on changes nothing of what goes on.
    session.spec = existing != nullptr && !s_.problem.empty() ? existing->spec : MakeSpec(node);
    session.spec.state = Drains() ? api::SessionState::kDraining : api::SessionState::kActive;
    // At the end of the Trace its sessions are drained, and stay until it is gone.
    if (!Drains()) session.metadata.finalizers = {std::string(kFinalizer)};
    if (existing == nullptr || !(existing->spec == session.spec) ||
        HasFinalizer(existing->metadata) == Drains()) {
      plan_.apply.push_back(std::move(session));
      waiting_for_.push_back(node);
    } else if (!IsReady(*existing)) {
      waiting_for_.push_back(WithReason(*existing) + WhySilent(*existing));
    } else if (!KnowsItsPods(*existing)) {
      waiting_for_.push_back(node + " (its weft-agent has not heard of all its pods yet)");
    }
    ++sessions_;
  }

  // An agent that runs answers a new session at once.
  std::string WhySilent(const TraceSession& session) {
    const auto made = kube::ParseTime(session.metadata.creation_timestamp);
    if (session.status.observed_generation != 0 || !made) return "";
    const kube::WallTime late = *made + kAgentSilent;
    if (s_.now >= late) return " (no weft-agent of this node answers: does its pod run?)";
    Again(late);
    return "";
  }

  // The API server tells an agent of its sessions and of its pods in any order, and with no pod, a
  // session is ready. Only new sessions are asked: later, pods come and go.
  bool KnowsItsPods(const TraceSession& session) {
    const auto* ready = api::FindCondition(trace_.status.conditions, api::kConditionReady);
    if (ready != nullptr && ready->status == ConditionStatus::kTrue) return true;
    const auto made = kube::ParseTime(session.metadata.creation_timestamp);
    // Clocks differ: a session of the future tells nothing.
    if (!made || s_.now < *made || s_.now >= *made + kAgentSilent) return true;
    const auto pods = std::ranges::count_if(selected_, [&](const PodFacts* pod) {
      return pod->node == session.spec.node_name && !pod->is_ending && IsMatchedByAgents(*pod, s_);
    });
    if (session.status.pods.matched >= pods) return true;
    Again(*made + kAgentSilent);
    return false;
  }

  [[nodiscard]] api::SessionSpec MakeSpec(const std::string& node) const {
    api::TraceSpec record = trace_.spec;
    record.user.attach = record.user.attach && WhyNotAttached(s_).empty();
    record.nodes = {};  // an agent is of one
    return {.node_name = node,
            .trace_name = trace_.metadata.name,
            .trace_uid = trace_.metadata.uid,
            .trace_generation = trace_.metadata.generation,
            .relay = s_.relay,
            .deadline = plan_.status.deadline,
            .cluster_wide = cluster_wide_,
            .record = std::move(record)};
  }

  [[nodiscard]] bool RestartsMissed() const {
    const auto found = trace_.metadata.annotations.find(std::string(kube::kRestartMissed));
    const bool asked = found != trace_.metadata.annotations.end() ? found->second == "true"
                                                                  : s_.name_space.restarts_missed;
    return asked && !Drains() && s_.problem.empty() && !cluster_wide_ && trace_.spec.RecordsUser();
  }

  // One pod of each owner at a time, while all its others are ready.
  void PlanEvictions() {
    const auto traced_since = kube::ParseTime(trace_.metadata.creation_timestamp);
    if (!RestartsMissed() || !traced_since) return;
    std::set<std::string> busy;
    for (const PodFacts& pod : s_.pods)
      if (!pod.is_over && (!pod.is_ready || pod.is_ending)) busy.insert(pod.restart);
    for (const PodFacts* pod : selected_) {
      const auto made = kube::ParseTime(pod->made);
      if (pod->restart.empty() || !MissedTheLibrary(*pod, s_) || !made ||
          *made > *traced_since + kRestartWindow)
        continue;
      if (s_.now < *made + kRestartAge)
        Again(*made + kRestartAge);
      else if (busy.insert(pod->restart).second)
        plan_.evict.push_back(pod->name);
    }
  }

  void PlanFinalizer() {
    for (const TraceSession* session : live_) {
      if (!IsDrained(*session)) not_drained_.push_back(session->spec.node_name);
    }
    const bool drained =
        plan_.apply.empty() && (Drains() ? not_drained_.empty() : live_.empty() && sessions_ == 0);
    const bool is_finalized = HasFinalizer(trace_.metadata);
    if (!drained && !deleting_ && !is_finalized) {
      plan_.add_finalizer = true;
      return;
    }
    const std::optional<kube::WallTime> since =
        deleting_ ? kube::ParseTime(trace_.metadata.deletion_timestamp) : s_.uninstalling_since;
    // A deletion at a time that cannot be read is not waited for.
    const bool too_late = since ? s_.now >= *since + kDrainLimit : deleting_;
    if (!drained && !too_late) {
      if (since) Again(*since + kDrainLimit);
      return;
    }
    if (!ReleaseSessions()) return;  // the removal of the others is seen, and is the next occasion
    plan_.remove_finalizer = is_finalized;
    gives_up_ = plan_.remove_finalizer && !not_drained_.empty();
  }

  // Removes the sessions that their finalizer would keep when the Trace is gone, and all where weft
  // is removed: weft that is installed again makes new ones. Returns whether there was room for the
  // counts of all of them.
  bool ReleaseSessions() {
    const bool uninstalling = s_.uninstalling_since.has_value();
    if (uninstalling) plan_.apply.clear();
    bool all = true;
    for (const TraceSession* session : live_) {
      const bool is_planned =
          std::ranges::find(plan_.remove, session->metadata.name) != plan_.remove.end();
      const bool stays = !uninstalling && session->metadata.deletion_timestamp.empty() &&
                         s_.nodes.contains(session->spec.node_name);
      if (!is_planned && !stays) all = Remove(*session) && all;
    }
    removed_ = uninstalling && all;
    return all;
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
    if (sessions_ > 0) {
      status.relay = s_.relay.name;
      status.folder =
          store::TraceFolder(SessionNamespace(s_), trace_.metadata.name, trace_.metadata.uid);
    }
    if (sessions_ > 0 && status.segments.empty())
      status.segments.push_back({.relay = s_.relay.name, .from = kube::FormatTime(s_.now)});
    if (s_.problem.empty()) status.pods = CountPods(s_, selected_);
    // The floor is for sessions that vanished without having been removed: someone took their
    // finalizer away, or they were deleted after the Trace's end.
    api::EventCounts counts = CountEvents(s_.sessions, status.removed_sessions);
    api::RaiseTo(counts, status.events);
    api::SortReasons(counts);
    status.events = std::move(counts);

    const bool good = s_.problem.empty();
    Set(api::kConditionAccepted, good ? ConditionStatus::kTrue : ConditionStatus::kFalse,
        good ? "Valid" : s_.problem_reason, s_.problem);
    if (s_.problem_reason == kTooManyTraces) Again(s_.now + kTooManyAgain);
    if (Drains()) {
      FillEnd();
    } else {
      FillReady();
      FillKernel();
      FillRelay();
      FillReceiving();
      FillDenied(api::kConditionBuffersGranted, "MemoryLimit", "AsAsked");
      FillDenied(api::kConditionFunctionsHooked, "HookedInPart", "Hooked");
      FillAttached();
      FillDenied(api::kConditionPreloadKept, "ImagePreloadReplaced", "Kept");
      FillDenied(api::kConditionConsumerHealthy, "ConsumerOutOfMemory", "Recovered");
      FillAgentStayed();
    }
  }

  void FillEnd() {
    const bool drained = not_drained_.empty() && plan_.apply.empty();
    Set(api::kConditionDrained, drained ? ConditionStatus::kTrue : ConditionStatus::kFalse,
        drained ? "Drained" : "Draining", drained ? "" : "waiting for " + Join(not_drained_));
    const bool uninstalled = !deleting_ && !ended_;
    const bool over = drained || removed_;
    Set(api::kConditionReady, ConditionStatus::kFalse,
        !over         ? "Draining"
        : uninstalled ? "Uninstalled"
                      : "Completed",
        deleting_     ? "the Trace is being deleted"
        : uninstalled ? "weft was removed from the cluster"
                      : "its duration is over");
    plan_.status.phase = over && ended_        ? api::Phase::kCompleted
                         : over && uninstalled ? api::Phase::kPending
                                               : api::Phase::kDraining;
    if (drained && ended_ && plan_.status.completion_time.empty())
      plan_.status.completion_time = kube::FormatTime(s_.now);
  }

  // What the nodes say of their kernels: one that cannot is named with its reason, and the others
  // go on.
  void FillKernel() {
    if (!trace_.spec.RecordsKernel()) return;
    std::string reason, message;
    size_t recording = 0;
    size_t asked = 0;
    ConditionStatus status = ConditionStatus::kUnknown;
    for (const TraceSession* session : live_) {
      if (session->spec.state == api::SessionState::kDraining) continue;
      ++asked;
      const auto* said =
          api::FindCondition(session->status.conditions, api::kConditionKernelTracing);
      if (said == nullptr || said->status == ConditionStatus::kUnknown) continue;
      if (said->status == ConditionStatus::kTrue) ++recording;
      const bool worse =
          status == ConditionStatus::kUnknown || said->status == ConditionStatus::kFalse;
      if (worse && status != ConditionStatus::kFalse) {
        status = said->status;
        reason = said->reason;
      }
      if (!said->message.empty() && message.size() < api::limits::kMessage)
        message += (message.empty() ? "" : "; ") + session->spec.node_name + ": " + said->message;
    }
    if (status == ConditionStatus::kTrue && recording < asked) status = ConditionStatus::kUnknown;
    if (status == ConditionStatus::kUnknown) reason = "WaitingForNodes";
    Set(api::kConditionKernelTracing, status, reason, message.substr(0, api::limits::kMessage));
  }

  // The nodes that deny the condition, with their messages; "": none does.
  [[nodiscard]] std::string WhoDenies(std::string_view type) const {
    std::string message;
    for (const TraceSession* session : live_) {
      const auto* said = api::FindCondition(session->status.conditions, type);
      if (said == nullptr || said->status != ConditionStatus::kFalse ||
          message.size() >= api::limits::kMessage)
        continue;
      message += (message.empty() ? "" : "; ") + session->spec.node_name + ": " + said->message;
    }
    return message.substr(0, api::limits::kMessage);
  }

  void FillRelay() {
    const auto is_connected = [](const TraceSession* session) {
      const auto* said =
          api::FindCondition(session->status.conditions, api::kConditionRelayAvailable);
      return said != nullptr && said->status == ConditionStatus::kTrue;
    };
    const auto is_refused = [](const TraceSession* session) {
      const auto* said =
          api::FindCondition(session->status.conditions, api::kConditionRelayAvailable);
      return said != nullptr && said->status == ConditionStatus::kFalse &&
             said->reason == "Refused";
    };
    if (const std::string message = WhoDenies(api::kConditionRelayAvailable); !message.empty())
      Set(api::kConditionRelayAvailable, ConditionStatus::kFalse,
          std::ranges::any_of(live_, is_refused) ? "Refused" : "Unreachable", message);
    else if (std::ranges::any_of(live_, is_connected))
      Set(api::kConditionRelayAvailable, ConditionStatus::kTrue, "Connected", "");
  }

  // After FillReady. A Trace that records and has no event is the usual sign of a wrong name.
  void FillReceiving() {
    const api::EventCounts& events = plan_.status.events;
    const std::string not_offered = DescribeNotOffered(trace_.spec.user.events, live_);
    if (events.delivered > 0)
      return Set(api::kConditionReceiving, ConditionStatus::kTrue, "Delivered", not_offered);
    if (events.recorded + events.discarded > 0)
      return Set(api::kConditionReceiving, ConditionStatus::kUnknown, "NotDelivered",
                 "events were recorded, and none is at the relay yet" +
                     (not_offered.empty() ? "" : "; " + not_offered));
    if (plan_.status.phase != api::Phase::kRecording) return;
    if (!not_offered.empty())
      return Set(api::kConditionReceiving, ConditionStatus::kFalse, "NotOffered", not_offered);
    Set(api::kConditionReceiving, ConditionStatus::kFalse, "NoEvents",
        "no event was recorded yet. If there should be some: do the names of events, the filter "
        "and "
        "the containers of the spec match the program's? A program that is static or setuid, or "
        "that was started without its pod's environment, is not traced");
  }

  // A condition that is set only where nodes deny it, or did.
  void FillDenied(std::string_view type, const char* why_not, const char* again) {
    const std::string message = WhoDenies(type);
    if (!message.empty()) {
      Set(type, ConditionStatus::kFalse, why_not, message);
    } else if (api::FindCondition(plan_.status.conditions, type)) {
      Set(type, ConditionStatus::kTrue, again, "");
    }
  }

  void FillAttached() {
    constexpr std::string_view kType = api::kConditionProcessesAttached;
    if (std::string why = WhyNotAttached(s_); trace_.spec.user.attach && !why.empty())
      return Set(kType, ConditionStatus::kFalse, std::string(kNotAllowed), std::move(why));
    FillDenied(kType, Attaches(s_) ? "AttachedInPart" : kNotAllowed.data(), "Attached");
  }

  // What was missed stays missed, also when the node's session is gone.
  void FillAgentStayed() {
    if (std::string message = WhoDenies(api::kConditionAgentStayed); !message.empty())
      Set(api::kConditionAgentStayed, ConditionStatus::kFalse, "AgentWasAway", std::move(message));
  }

  // Pods are there, and not one of them can be recorded.
  [[nodiscard]] bool NoPodCanBeTraced() const {
    return !selected_.empty() && std::ranges::none_of(selected_, [&](const PodFacts* pod) {
      return CanBeTraced(*pod, s_);
    });
  }

  void FillReady() {
    const bool good = s_.problem.empty();
    const bool hopeless = NoPodCanBeTraced();
    const bool ready = sessions_ > 0 && waiting_for_.empty() && !hopeless;
    const bool may_pass = s_.problem_reason == kTooManyTraces;
    plan_.status.phase = !good && sessions_ == 0 && !may_pass ? api::Phase::kFailed
                         : !ready                             ? api::Phase::kPending
                         : trace_.spec.paused                 ? api::Phase::kPaused
                                                              : api::Phase::kRecording;
    if (!good && sessions_ == 0) {
      Set(api::kConditionReady, ConditionStatus::kFalse, s_.problem_reason,
          "the Trace is not accepted");
    } else if (cluster_wide_ ? selected_nodes_.empty() : selected_.empty()) {
      // Nodes that had such pods go on listening.
      Set(api::kConditionReady, ready ? ConditionStatus::kTrue : ConditionStatus::kFalse,
          cluster_wide_ ? "NoNodes" : "NoPods",
          cluster_wide_ ? "spec.nodes matches no node"
                        : "spec.pods matches no pod of the namespace");
      if (sessions_ == 0) plan_.status.phase = api::Phase::kPending;
    } else if (sessions_ == 0) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "NotScheduled",
          "no pod that spec.pods matches has a node yet");
    } else if (hopeless) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "NothingTraced",
          "none of the " + std::to_string(selected_.size()) +
              " pods that spec.pods matches can be traced; status.pods.skipped says why");
    } else if (!ready) {
      Set(api::kConditionReady, ConditionStatus::kFalse, "WaitingForNodes",
          ("waiting for " + Join(waiting_for_)).substr(0, api::limits::kMessage));
    } else {
      Set(api::kConditionReady, ConditionStatus::kTrue, trace_.spec.paused ? "Paused" : "Recording",
          DescribeMissing());
    }
  }

  // "": all pods are traced, with all containers that the spec names.
  [[nodiscard]] std::string DescribeMissing() const {
    const api::PodCounts& pods = plan_.status.pods;
    std::int64_t skipped = 0;
    for (const api::SkippedPods& of_reason : pods.skipped) skipped += of_reason.count;
    std::string text;
    if (skipped != 0)
      text = "in part: " + std::to_string(skipped) + " of " + std::to_string(pods.matched) +
             " pods not traced; status.pods.skipped says why";
    const std::string unknown = DescribeUnknownContainers(s_, selected_);
    if (!unknown.empty()) text += (text.empty() ? "in part: " : "; ") + unknown;
    return text.substr(0, api::limits::kMessage);
  }

  // Pods of a Job come and go: a Trace that was ready before and still is has no news.
  static bool StaysReady(const api::Condition* before, const api::Condition& now) {
    return now.type == api::kConditionReady && before != nullptr &&
           before->status == ConditionStatus::kTrue && now.status == ConditionStatus::kTrue &&
           before->reason != "Paused" && now.reason != "Paused";
  }

  // A change of reason is news; a Trace that begins with WaitingForNodes, as all do, is not. The
  // last Event of a Trace says what became of its events.
  void Announce() {
    const api::EventCounts& events = plan_.status.events;
    if (gives_up_)
      plan_.notes.push_back({.warning = true,
                             .reason = "NotDrained",
                             .text = "ended before all events were delivered; nodes that did not "
                                     "answer in time: " +
                                     Join(not_drained_) + ". " + api::Describe(events)});
    for (const api::Condition& now : plan_.status.conditions) {
      const api::Condition* before = api::FindCondition(trace_.status.conditions, now.type);
      if (before != nullptr && before->reason == now.reason) continue;
      if (StaysReady(before, now)) continue;
      if (now.reason == "WaitingForNodes" || now.reason == "Valid" || now.reason == "Draining" ||
          now.type == api::kConditionDrained ||
          (now.type == api::kConditionReceiving && now.reason != "NotOffered"))
        continue;
      if (now.type == api::kConditionReady && now.reason == s_.problem_reason) continue;
      const bool is_of_nodes =
          now.type == api::kConditionKernelTracing || now.type == api::kConditionBuffersGranted ||
          now.type == api::kConditionFunctionsHooked || now.type == api::kConditionPreloadKept ||
          now.type == api::kConditionProcessesAttached ||
          now.type == api::kConditionConsumerHealthy || now.type == api::kConditionAgentStayed ||
          now.type == api::kConditionRelayAvailable;
      if (is_of_nodes && now.status != ConditionStatus::kFalse) continue;
      const bool is_end = now.reason == "Completed" || now.reason == "Uninstalled";
      std::string text = now.message.empty() ? "the Trace is now: " + now.reason : now.message;
      if (is_end) text += ". " + api::Describe(events);
      plan_.notes.push_back(
          {.warning = is_of_nodes || now.reason == "NotOffered" || now.reason == "NoPods" ||
                      now.reason == "NoNodes" || now.reason == "NothingTraced" ||
                      now.reason == s_.problem_reason || (is_end && events.missing > 0),
           .reason = now.reason,
           .text = std::move(text)});
    }
  }

  const Situation& s_;
  const api::Trace& trace_;
  const bool cluster_wide_;
  const std::vector<const PodFacts*> selected_;
  const std::set<std::string> selected_nodes_;
  Plan plan_;
  bool deleting_ = false;
  bool ended_ = false;
  bool removed_ = false;                   // the sessions, with weft
  int sessions_ = 0;                       // that are there or will be, and belong to the Trace
  bool gives_up_ = false;                  // on nodes that did not drain in time
  std::vector<const TraceSession*> live_;  // that are not removed
  std::set<std::string> removed_nodes_;    // whose session is being removed
  std::vector<std::string> waiting_for_;   // nodes, with their reasons
  std::vector<std::string> not_drained_;   // nodes
};

}  // namespace

std::string Join(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i)
    out += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) out += " and " + std::to_string(names.size() - kMost) + " more";
  return out;
}

bool HasFinalizer(const api::Metadata& metadata) {
  return std::ranges::find(metadata.finalizers, kFinalizer) != metadata.finalizers.end();
}

Plan MakePlan(const Situation& situation) { return Planner(situation).Make(); }

bool DiffersBeyondCounts(const api::TraceStatus& a, const api::TraceStatus& b) {
  api::TraceStatus same_counts = a;
  same_counts.events = b.events;
  return !(same_counts == b);
}

}  // namespace weft::controller
