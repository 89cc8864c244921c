// SPDX-License-Identifier: Apache-2.0
// The tables of the statuses of Trace and TraceSession.
#include <array>

#include "lib/api/limits.h"
#include "lib/api/names.h"
#include "lib/api/scalar_types.h"
#include "lib/api/session_schema.h"
#include "lib/api/trace_schema.h"

namespace weft::api {
namespace {

TypePtr<std::int64_t> Count() { return Int<std::int64_t>(0, INT64_MAX); }

TypePtr<std::string> Time() {
  return String({.type_name = "time", .max = 64, .check = CheckTime, .format = "date-time"});
}

TypePtr<std::string> Text(std::size_t max) {
  return String({.max = max, .check = CheckAnyText, .may_be_empty = true});
}

constexpr std::array<std::string_view, 6> kPhases = {"Pending",  "Recording", "Paused",
                                                     "Draining", "Completed", "Failed"};
constexpr std::array<std::string_view, 3> kConditionStatuses = {"True", "False", "Unknown"};

TypePtr<Condition> ConditionSchema() {
  using T = Condition;
  return Object<T>(
      "Condition",
      {MakeField("type", &T::type, String({.max = 316, .check = CheckAnyText}),
                 "Type of the condition: Accepted, Ready, RelayAvailable, Receiving, Drained, "
                 "KernelTracing, BuffersGranted, FunctionsHooked, ProcessesAttached, PreloadKept, "
                 "ConsumerHealthy, AgentStayed.",
                 kRequired),
       MakeField("status", &T::status, Enum<ConditionStatus>(kConditionStatuses),
                 "Whether the condition holds: True, False or Unknown.", kRequired),
       MakeField("observedGeneration", &T::observed_generation, Count(),
                 "Generation of the spec for which the condition was set."),
       MakeField("lastTransitionTime", &T::last_transition_time, Time(),
                 "Time of the last change of status.", kRequired),
       MakeField("reason", &T::reason, String({.max = 1024, .check = CheckAnyText}),
                 "Machine-readable reason.", kRequired),
       MakeField("message", &T::message, Text(32768), "Explanation for people.", kRequired)});
}

TypePtr<PodCounts> PodCountsSchema() {
  using S = SkippedPods;
  using T = PodCounts;
  const auto skipped = Object<S>(
      "SkippedPods",
      {MakeField("reason", &S::reason, String({.max = limits::kReason, .check = CheckAnyText}),
                 "Machine-readable reason why these pods are not traced.", kRequired),
       MakeField("message", &S::message, Text(limits::kMessage), "Explanation for people."),
       MakeField("count", &S::count, Count(), "Number of pods.", kRequired),
       MakeField("names", &S::names, ListOf(Text(limits::kDnsSubdomain), limits::kSkippedPodNames),
                 "Names of some of these pods.")});
  return Object<T>(
      "PodCounts",
      {MakeField("matched", &T::matched, Count(), "Number of pods that spec.pods selects.",
                 kAlways),
       MakeField("traced", &T::traced, Count(), "Number of pods that are traced.", kAlways),
       MakeField("skipped", &T::skipped, ListOf(skipped, limits::kReasons),
                 "Selected pods that are not traced, by reason.")});
}

TypePtr<EventCounts> EventsSchema() {
  using L = EventLoss;
  using T = EventCounts;
  const auto reason = String({.max = limits::kReason, .check = CheckAnyText});
  const auto loss = Object<L>(
      "EventLoss",
      {MakeField("stage", &L::stage, reason,
                 "Stage at which the events were lost, such as ring or relay.", kRequired),
       MakeField("reason", &L::reason, reason, "Reason, such as full.", kRequired),
       MakeField("count", &L::count, Count(), "Number of events.", kRequired)});
  return Object<T>(
      "EventCounts",
      {MakeField("recorded", &T::recorded, Count(), "Events that were written into a buffer.",
                 kAlways),
       MakeField("delivered", &T::delivered, Count(), "Events that the relay has stored.", kAlways),
       MakeField("discarded", &T::discarded, Count(),
                 "Events that were not recorded, for example because a buffer was full.", kAlways),
       MakeField("overwritten", &T::overwritten, Count(),
                 "Events that newer ones overwrote, in overwrite mode.", kAlways),
       MakeField("lost", &T::lost, Count(),
                 "Events that were recorded, but lost before they were delivered.", kAlways),
       MakeField("missing", &T::missing, Count(),
                 "Sum of discarded and lost events, which cannot be read.", kAlways),
       MakeField("reasons", &T::reasons, ListOf(loss, limits::kReasons),
                 "Discarded, overwritten and lost events by stage and reason.")});
}

TypePtr<EventRuleState> EventRuleStateSchema() {
  using T = EventRuleState;
  return Object<T>(
      "EventRuleState",
      {MakeField("event", &T::event, Text(limits::kEventName), "Name in the rule.", kRequired),
       MakeField("problem", &T::problem, Text(limits::kRuleProblem),
                 "What no running program of the pods offers: the event, or a field that the "
                 "filter names. Absent: a program offers it.")});
}

TypePtr<RemovedSessions> RemovedSessionsSchema() {
  using T = RemovedSessions;
  return Object<T>(
      "RemovedSessions",
      {MakeField("events", &T::events, EventsSchema(), "Sum of the last counts of these sessions."),
       MakeField("uids", &T::uids, ListOf(Text(limits::kUuid), limits::kRemovedSessions),
                 "uids of the last of these sessions. A session that still exists and is listed "
                 "here is not counted again.")});
}

TypePtr<Segment> SegmentSchema() {
  using T = Segment;
  return Object<T>(
      "Segment",
      {MakeField("relay", &T::relay, Text(limits::kDnsSubdomain), "Name of the relay.", kRequired),
       MakeField("from", &T::from, Time(), "Time at which the relay took over the Trace.",
                 kRequired),
       MakeField("to", &T::to, Time(),
                 "Time at which the relay gave up the Trace. Absent: it still has the Trace.")});
}

TypePtr<StorageStatus> StorageStatusSchema() {
  using T = StorageStatus;
  return Object<T>(
      "StorageStatus",
      {MakeField("removedEvents", &T::removed_events, Count(),
                 "Delivered events that the relay has removed, for their age or for its limits."),
       MakeField("keptBytes", &T::kept_bytes, Count(),
                 "Bytes that the relay had of the Trace when it removed some last.")});
}

}  // namespace

TypePtr<TraceStatus> StatusSchema() {
  using T = TraceStatus;
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceStatus",
      {MakeField("observedGeneration", &T::observed_generation, Count(),
                 "Generation of the spec that this status describes."),
       MakeField("phase", &T::phase, Enum<Phase>(kPhases),
                 "Phase of the Trace. The conditions give details.", kAlways),
       MakeField("conditions", &T::conditions,
                 ListOf(ConditionSchema(), limits::kConditions, ListKind::kMapByType),
                 "Standard conditions."),
       MakeField("relay", &T::relay, Text(limits::kDnsSubdomain),
                 "Name of the relay that stores the Trace."),
       MakeField("folder", &T::folder, Text(limits::kTraceFolder),
                 "Folder of the Trace's events in the relay's data folder: NAMESPACE/TRACE/UID."),
       MakeField("startTime", &T::start_time, Time(), "Time at which recording began."),
       MakeField("deadline", &T::deadline, Time(),
                 "Time at which recording will end: startTime plus duration."),
       MakeField("completionTime", &T::completion_time, Time(), "Time at which the Trace ended."),
       MakeField("pods", &T::pods, PodCountsSchema(), "Counts of pods.", kAlways),
       MakeField("events", &T::events, EventsSchema(),
                 "Counts of events of all sessions that the Trace ever had. No count ever falls. "
                 "recorded = delivered + overwritten + lost + in flight.",
                 kAlways),
       MakeField("removedSessions", &T::removed_sessions, RemovedSessionsSchema(),
                 "Sessions that do not exist any more, for example because their node is gone. "
                 "Their counts are a part of events."),
       MakeField("segments", &T::segments, ListOf(SegmentSchema(), limits::kSegments),
                 "The relays that have stored the Trace, in order of time."),
       MakeField("storage", &T::storage, StorageStatusSchema(),
                 "What the relay has removed of the Trace. Absent: nothing.")}));
  return schema;
}

TypePtr<SessionStatus> SessionStatusSchema() {
  using T = SessionStatus;
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceSessionStatus",
      {MakeField("observedGeneration", &T::observed_generation, Count(),
                 "Generation of the session that this status describes."),
       MakeField("phase", &T::phase, Enum<Phase>(kPhases), "Phase of the session on this node.",
                 kAlways),
       MakeField("conditions", &T::conditions,
                 ListOf(ConditionSchema(), limits::kConditions, ListKind::kMapByType),
                 "Standard conditions: Ready, Drained, KernelTracing."),
       MakeField("pods", &T::pods, PodCountsSchema(),
                 "Counts of the node's selected pods that have the library."),
       MakeField("events", &T::events, EventsSchema(),
                 "Counts of the node's events, at most 6 s old while they change. No count ever "
                 "falls."),
       MakeField("eventRules", &T::event_rules, ListOf(EventRuleStateSchema(), limits::kEventRules),
                 "For each rule of record.user.events, whether programs on this node offer its "
                 "events. Absent: no program has been looked at for some seconds.")}));
  return schema;
}

}  // namespace weft::api
