// SPDX-License-Identifier: Apache-2.0
// See report.h.
#include "node-agent/agent/cluster/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/api/limits.h"

namespace weft::agent {
namespace {

using api::ConditionStatus;

// A condition that says the same as before keeps its time.
void Set(api::SessionStatus& status, const api::TraceSession& order, std::string_view type,
         ConditionStatus value, std::string reason, const std::string& message,
         kube::WallTime now) {
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

void Set(api::SessionStatus& status, const api::TraceSession& order, std::string_view type,
         bool holds, std::string reason, const std::string& message, kube::WallTime now) {
  Set(status, order, type, holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
      std::move(reason), message, now);
}

std::string Join(const std::vector<std::string>& notices) {
  std::string joined;
  for (const std::string& notice : notices) joined += (joined.empty() ? "" : "; ") + notice;
  return joined;
}

// weft.ko found that its own words contradict each other.
constexpr const char* kStopped = "Stopped";

// No number, and once for all: how often others do what the probe is on is not this namespace's
// business.
constexpr const char* kMissed =
    "the kernel did not deliver all hits of its probes; of whom the others were is not known";

struct Verdict {
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason, message;
};

// The condition KernelTracing of a session that asks for it.
Verdict JudgeKernel(const Session& session, const KernelState& kernel) {
  if (!kernel.is_known) return {ConditionStatus::kUnknown, kernel.reason, kernel.message};
  if (!kernel.is_ready) return {ConditionStatus::kFalse, kernel.reason, kernel.message};
  std::vector<std::string> all = session.kernel_notices;
  all.insert(all.end(), session.probe_notices.begin(), session.probe_notices.end());
  if (session.Counts().missed_anywhere != 0) all.emplace_back(kMissed);
  const std::string notices = Join(all);
  if (!session.kernel_refusal.empty())
    return {ConditionStatus::kFalse, "NothingToRecord", session.kernel_refusal};
  const SessionChannel* channel = session.KernelChannel();
  if (channel == nullptr)
    return {ConditionStatus::kUnknown, session.is_cluster_wide() ? "Preparing" : "WaitingForPods",
            notices};
  if (!channel->failure.empty()) return {ConditionStatus::kFalse, "Refused", channel->failure};
  if (!channel->stopped.empty()) return {ConditionStatus::kFalse, kStopped, channel->stopped};
  if (!channel->ready) return {ConditionStatus::kUnknown, "WaitingForRelay", notices};
  if (channel->paused) return {ConditionStatus::kTrue, "Paused", notices};
  return {ConditionStatus::kTrue, notices.empty() ? "Recording" : "RecordingInPart", notices};
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

bool IsOfKernelOnly(const Session& session) {
  const api::TraceSpec& record = session.order->spec.record;
  return record.RecordsKernel() && !record.RecordsUser();
}

// Once containers were recorded, others come and go, and agents are replaced: only the relay, or
// another spec, makes the session wait again.
bool StaysReady(const Session& session) {
  const api::TraceSession& order = *session.order;
  return order.status.observed_generation == order.metadata.generation &&
         api::IsTrue(order.status.conditions, api::kConditionReady) &&
         (!session.channels.empty() || !session.retired_ids.empty()) &&
         session.relay_failure.empty();
}

bool IsTraced(const Session& session, const std::string& pod_uid) {
  if (IsOfKernelOnly(session)) {
    const SessionChannel* channel = session.KernelChannel();
    return channel != nullptr && channel->ready && channel->failure.empty() &&
           channel->stopped.empty() && !session.probes_pending;
  }
  const auto of_pod = [&](const SessionChannel& c) { return c.definition.pod_uid == pod_uid; };
  const auto is_on = [&](const SessionChannel& c) {
    return !of_pod(c) || (c.phase == ChannelPhase::kOn && c.ready);
  };
  return !session.hooks_pending && !session.attach_pending &&
         std::ranges::any_of(session.channels, of_pod) &&
         std::ranges::all_of(session.channels, is_on);
}

// Under `reason` in `skipped`.
void AddSkipped(const SelectedPods& pods, const std::string& uid,
                const SelectedPods::Reason& reason, std::vector<api::SkippedPods>& skipped) {
  auto found = std::ranges::find(skipped, reason.reason, &api::SkippedPods::reason);
  if (found == skipped.end())
    found = skipped.insert(found, {.reason = reason.reason, .message = reason.message});
  ++found->count;
  const auto name = pods.names.find(uid);
  if (name != pods.names.end() && found->names.size() < api::limits::kSkippedPodNames)
    found->names.push_back(name->second);
}

// Why nothing of a pod that is not reachable is recorded.
SelectedPods::Reason WhyUnreachable(const Session& session, const KernelState& kernel) {
  if (!IsOfKernelOnly(session))
    return {"VolumeNotReady", "the kubelet has not made the library's volume yet"};
  // Control groups are looked for only where the kernel can be recorded.
  if (!kernel.is_known) return {kernel.reason, "the node's agent is making weft.ko ready"};
  if (!kernel.is_ready) return {kernel.reason, kernel.message.substr(0, api::limits::kMessage)};
  return {"CgroupNotReady", "the kubelet has not made the pod's control group yet"};
}

// Returns whether all that can be told are told.
bool CountPods(const Session& session, const SelectedPods& pods, const KernelState& kernel,
               api::PodCounts& counts) {
  const SelectedPods::Reason unreachable = WhyUnreachable(session, kernel);
  counts.matched = static_cast<int64_t>(pods.reachable.size());
  int64_t told = 0;
  for (const auto& [uid, reachable] : pods.reachable) {
    const bool is_told = pods.untouched.contains(uid) ||
                         (IsTraced(session, uid) && (reachable || !IsOfKernelOnly(session)));
    if (is_told) ++told;
    const auto without = pods.without_library.find(uid);
    if (!reachable)
      AddSkipped(pods, uid, unreachable, counts.skipped);
    else if (without != pods.without_library.end())
      AddSkipped(pods, uid, without->second, counts.skipped);
    else if (is_told)
      ++counts.traced;
  }
  return told == counts.matched;
}

// What containers get instead of what the Trace asks for, in words; "": they get it.
std::string DescribeGrants(const Session& session) {
  using Grant = std::pair<std::string, std::string>;  // granted, asked
  std::map<Grant, std::set<std::string>> containers;
  for (const SessionChannel& channel : session.channels) {
    const RingSize granted{channel.spec.subbuf_shift, channel.spec.subbufs_shift};
    if (channel.of_kernel() || channel.phase != ChannelPhase::kOn || granted == channel.asked)
      continue;
    containers[{ToString(granted), ToString(channel.asked)}].insert(channel.container);
  }
  std::string text;
  for (const auto& [grant, keys] : containers) {
    text += (text.empty() ? "buffers of " : "; of ") + std::to_string(keys.size());
    text += (keys.size() == 1 ? " container are " : " containers are ") + grant.first;
    text += " instead of " + grant.second;
  }
  return text.empty() ? "" : text + ": all buffers stay under 5 % of a container's memory limit";
}

// Which containers lack what their image preloads, and what to do; "": all have it.
std::string DescribeReplaced(const SelectedPods& pods) {
  std::string text;
  for (const auto& [value, containers] : pods.replaced_preloads) {
    text += (text.empty() ? "" : "; ") + std::string("the image sets LD_PRELOAD to \"") + value +
            "\", which is not loaded in ";
    const size_t named = std::min(containers.size(), api::limits::kSkippedPodNames);
    for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + containers[i];
    if (named < containers.size())
      text += " and " + std::to_string(containers.size() - named) + " more";
    text += ": to load both, annotate the pod, or its template, with weft.dev/preload: \"" + value +
            "\", and make it anew";
  }
  return text;
}

// "": an agent was always there.
std::string DescribeAbsences(const Session& session) {
  if (session.absences.empty()) return "";
  std::string text = "no agent ran";
  for (const std::string& span : session.absences)
    text += (&span == &session.absences.front() ? " from " : ", and from ") + span;
  const api::TraceSpec& record = session.order->spec.record;
  if (record.RecordsUser()) text += ": programs that began and ended meanwhile are in no count";
  if (record.RecordsKernel())
    text += std::string(record.RecordsUser() ? ", nor are" : ": in no count are") +
            " events of the kernel";
  return text;
}

// What of a Trace's attach is not done.
void SetAttached(api::SessionStatus& status, const Session& session, const SelectedPods& pods,
                 kube::WallTime now) {
  if (!pods.attach_refusal.empty())
    Set(status, *session.order, api::kConditionProcessesAttached, false, "NotAllowed",
        pods.attach_refusal, now);
  else if (!session.attach_notices.empty())
    Set(status, *session.order, api::kConditionProcessesAttached, false, "AttachedInPart",
        Join(session.attach_notices), now);
}

// What an agent before reported of the same order holds until this one knows.
std::vector<api::EventRuleState> DescribeRules(const Session& session) {
  const api::TraceSession& order = *session.order;
  const std::vector<api::EventRule>& rules = order.spec.record.user.events;
  if (session.rule_problems.size() != rules.size())
    return order.status.observed_generation == order.metadata.generation
               ? order.status.event_rules
               : std::vector<api::EventRuleState>();
  std::vector<api::EventRuleState> states;
  states.reserve(rules.size());
  for (size_t i = 0; i < rules.size(); ++i)
    states.push_back({rules[i].name, session.rule_problems[i]});
  return states;
}

// Not set before the first connection, or failure.
void SetRelay(api::SessionStatus& status, const Session& session, kube::WallTime now) {
  const bool is_connected = std::ranges::any_of(session.channels, &SessionChannel::ready);
  const std::string& failure = session.relay_failure;
  if (!failure.empty())
    Set(status, *session.order, api::kConditionRelayAvailable, false, "Unreachable", failure, now);
  else if (!session.relay_refusal.empty())
    Set(status, *session.order, api::kConditionRelayAvailable, false, "Refused",
        session.relay_refusal, now);
  else if (is_connected)
    Set(status, *session.order, api::kConditionRelayAvailable, true, "Connected", "", now);
}

}  // namespace

bool IsDrained(const Session& session) {
  return std::ranges::all_of(
      session.channels, [](const SessionChannel& c) { return c.phase == ChannelPhase::kDrained; });
}

api::SessionStatus MakeStatus(const Session& session, const SelectedPods& pods,
                              const KernelState& kernel, kube::WallTime now,
                              const std::string& consumer) {
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
  status.event_rules = DescribeRules(session);
  SetRelay(status, session, now);
  if (!consumer.empty())
    Set(status, order, api::kConditionConsumerHealthy, false, "ConsumerOutOfMemory", consumer, now);
  if (const std::string absences = DescribeAbsences(session); !absences.empty())
    Set(status, order, api::kConditionAgentStayed, false, "AgentWasAway", absences, now);
  const bool of_kernel = order.spec.record.RecordsKernel();
  const Verdict verdict = of_kernel ? JudgeKernel(session, kernel) : Verdict{};
  const bool all_told = CountPods(session, pods, kernel, status.pods);
  if (IsOfKernelOnly(session) && verdict.status == ConditionStatus::kFalse) {
    status.phase = api::Phase::kFailed;
    Set(status, order, api::kConditionReady, false,
        verdict.reason == kStopped ? kStopped : "NotPossible", verdict.message, now);
    Set(status, order, api::kConditionKernelTracing, verdict.status, verdict.reason,
        verdict.message, now);
    return status;
  }
  // Pods are nothing to a cluster-wide session.
  const bool ready = session.is_cluster_wide() ? verdict.status == ConditionStatus::kTrue
                                               : all_told || StaysReady(session);
  const bool paused = order.spec.record.paused;
  status.phase = !ready   ? api::Phase::kPending
                 : paused ? api::Phase::kPaused
                          : api::Phase::kRecording;
  Set(status, order, api::kConditionReady, ready,
      !ready   ? "WaitingForRelay"
      : paused ? "Paused"
               : "Recording",
      ready ? Join(session.notices) : session.relay_failure, now);
  if (of_kernel)
    Set(status, order, api::kConditionKernelTracing, verdict.status, verdict.reason,
        verdict.message, now);
  if (const std::string grants = DescribeGrants(session); !grants.empty())
    Set(status, order, api::kConditionBuffersGranted, false, "MemoryLimit", grants, now);
  if (!session.hook_notices.empty())
    Set(status, order, api::kConditionFunctionsHooked, false, "HookedInPart",
        Join(session.hook_notices), now);
  SetAttached(status, session, pods, now);
  if (const std::string replaced = DescribeReplaced(pods); !replaced.empty())
    Set(status, order, api::kConditionPreloadKept, false, "ImagePreloadReplaced", replaced, now);
  return status;
}

api::SessionStatus MakeFailedStatus(const api::TraceSession& order, const std::string& failure,
                                    kube::WallTime now, const Session* before) {
  api::SessionStatus status;
  status.observed_generation = order.metadata.generation;
  if (before != nullptr) status.events = CountEvents(before->Counts());
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
