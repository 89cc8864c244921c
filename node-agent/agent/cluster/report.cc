// SPDX-License-Identifier: Apache-2.0
// See report.h.
#include "node-agent/agent/cluster/report.h"

#include <algorithm>

#include "lib/api/limits.h"

namespace weft::agent {
namespace {

using api::ConditionStatus;

// A condition that says the same as before keeps its time.
void Set(api::SessionStatus& status, const api::TraceSession& order, std::string_view type,
         bool holds, std::string reason, const std::string& message, kube::WallTime now) {
  const ConditionStatus value = holds ? ConditionStatus::kTrue : ConditionStatus::kFalse;
  const api::Condition* before = api::FindCondition(order.status.conditions, type);
  const bool same = before != nullptr && before->status == value;
  status.conditions.push_back(
      {.type = std::string(type),
       .status = value,
       .observed_generation = order.metadata.generation,
       .last_transition_time = same ? before->last_transition_time : kube::FormatTime(now),
       .reason = std::move(reason),
       .message = message.substr(0, api::limits::kMessage)});
}

int64_t Sum(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [reason, count] : counts) sum += count;
  return static_cast<int64_t>(sum);
}

void AddReason(api::EventCounts& events, std::string stage, std::string reason, uint64_t count) {
  if (count == 0 || events.reasons.size() >= api::limits::kReasons) return;
  events.reasons.push_back({std::move(stage), std::move(reason), static_cast<int64_t>(count)});
}

api::EventCounts CountEvents(const ipc::ChannelCounts& counts) {
  api::EventCounts events;
  events.recorded = static_cast<int64_t>(counts.recorded);
  events.delivered = static_cast<int64_t>(counts.delivered);
  events.discarded = Sum(counts.discarded);
  events.overwritten = static_cast<int64_t>(counts.overwritten);
  events.lost = Sum(counts.lost);
  events.missing = events.discarded + events.lost;
  for (const auto& [reason, count] : counts.discarded) AddReason(events, "ring", reason, count);
  AddReason(events, "ring", "overwritten", counts.overwritten);
  for (const auto& [where, count] : counts.lost) {
    const size_t slash = where.find('/');
    AddReason(events, where.substr(0, slash),
              slash == std::string::npos ? "" : where.substr(slash + 1), count);
  }
  return events;
}

bool IsTraced(const Session& session, const std::string& pod_uid) {
  const auto of_pod = [&](const SessionChannel& c) { return c.definition.pod_uid == pod_uid; };
  const auto is_on = [&](const SessionChannel& c) {
    return !of_pod(c) || (c.phase == ChannelPhase::kOn && c.ready);
  };
  return std::ranges::any_of(session.channels, of_pod) &&
         std::ranges::all_of(session.channels, is_on);
}

void CountPods(const Session& session, const SelectedPods& pods, api::PodCounts& counts) {
  counts.matched = static_cast<int64_t>(pods.reachable.size());
  api::SkippedPods unreachable{.reason = "VolumeNotReady",
                               .message = "the kubelet has not made the library's volume yet"};
  for (const auto& [uid, reachable] : pods.reachable) {
    if (IsTraced(session, uid)) ++counts.traced;
    if (reachable) continue;
    ++unreachable.count;
    const auto name = pods.names.find(uid);
    if (name != pods.names.end() && unreachable.names.size() < api::limits::kSkippedPodNames)
      unreachable.names.push_back(name->second);
  }
  if (unreachable.count > 0) counts.skipped.push_back(std::move(unreachable));
}

}  // namespace

bool IsDrained(const Session& session) {
  return std::ranges::all_of(
      session.channels, [](const SessionChannel& c) { return c.phase == ChannelPhase::kDrained; });
}

api::SessionStatus MakeStatus(const Session& session, const SelectedPods& pods,
                              kube::WallTime now) {
  const api::TraceSession& order = *session.order;
  api::SessionStatus status;
  status.observed_generation = order.metadata.generation;
  status.events = CountEvents(session.Counts());
  if (order.spec.state == api::SessionState::kDraining) {
    const bool drained = IsDrained(session);
    status.phase = drained ? api::Phase::kCompleted : api::Phase::kDraining;
    Set(status, order, api::kConditionReady, false, drained ? "Completed" : "Draining", "", now);
    Set(status, order, api::kConditionDrained, drained, drained ? "Drained" : "Draining", "", now);
    return status;
  }
  CountPods(session, pods, status.pods);
  const bool ready = status.pods.traced == status.pods.matched;
  const bool paused = order.spec.record.paused;
  status.phase = !ready   ? api::Phase::kPending
                 : paused ? api::Phase::kPaused
                          : api::Phase::kRecording;
  std::string notices;
  for (const std::string& notice : session.notices)
    notices += (notices.empty() ? "" : "; ") + notice;
  Set(status, order, api::kConditionReady, ready,
      !ready   ? "WaitingForRelay"
      : paused ? "Paused"
               : "Recording",
      notices, now);
  return status;
}

api::SessionStatus MakeFailedStatus(const api::TraceSession& order, const std::string& failure,
                                    kube::WallTime now) {
  api::SessionStatus status;
  status.observed_generation = order.metadata.generation;
  const bool draining = order.spec.state == api::SessionState::kDraining;
  status.phase = draining ? api::Phase::kCompleted : api::Phase::kFailed;
  Set(status, order, api::kConditionReady, false, "NotPossible", failure, now);
  if (draining) Set(status, order, api::kConditionDrained, true, "Drained", "", now);
  return status;
}

bool DiffersBeyondCounts(const api::SessionStatus& a, const api::SessionStatus& b) {
  api::SessionStatus same = a;
  same.events = b.events;
  // Times say when a condition changed, not that it did.
  for (api::Condition& condition : same.conditions) {
    const api::Condition* other = api::FindCondition(b.conditions, condition.type);
    if (other != nullptr) condition.last_transition_time = other->last_transition_time;
  }
  return !(same == b);
}

}  // namespace weft::agent
