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

template <typename T>
TypePtr<T> Object(std::string name, std::vector<Field<T>> fields) {
  return std::make_shared<ObjectType<T>>(std::move(name), std::move(fields));
}

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
  return Object<T>("Condition",
                   {MakeField("type", &T::type, String({.max = 316, .check = CheckAnyText}),
                              "Accepted, Ready, Drained, KernelTracing.", kRequired),
                    MakeField("status", &T::status, Enum<ConditionStatus>(kConditionStatuses),
                              "Whether it holds.", kRequired),
                    MakeField("observedGeneration", &T::observed_generation, Count(),
                              "Generation of the spec that this is about."),
                    MakeField("lastTransitionTime", &T::last_transition_time, Time(),
                              "When status last changed.", kRequired),
                    MakeField("reason", &T::reason, String({.max = 1024, .check = CheckAnyText}),
                              "Why, for programs.", kRequired),
                    MakeField("message", &T::message, Text(32768), "Why, for people.", kRequired)});
}

TypePtr<PodCounts> PodsSchema() {
  using S = SkippedPods;
  using T = PodCounts;
  const auto skipped = Object<S>(
      "SkippedPods",
      {MakeField("reason", &S::reason, String({.max = limits::kReason, .check = CheckAnyText}),
                 "Why these pods are not traced, for programs.", kRequired),
       MakeField("message", &S::message, Text(limits::kMessage), "Why, for people."),
       MakeField("count", &S::count, Count(), "How many pods.", kRequired),
       MakeField("names", &S::names, ListOf(Text(limits::kDnsSubdomain), limits::kSkippedPodNames),
                 "Some of them.")});
  return Object<T>(
      "PodCounts",
      {MakeField("matched", &T::matched, Count(), "Pods that spec.pods selects.", kAlways),
       MakeField("traced", &T::traced, Count(), "Pods that are traced.", kAlways),
       MakeField("skipped", &T::skipped, ListOf(skipped, limits::kReasons),
                 "Pods that are selected and not traced, by reason.")});
}

TypePtr<EventCounts> EventsSchema() {
  using L = EventLoss;
  using T = EventCounts;
  const auto reason = String({.max = limits::kReason, .check = CheckAnyText});
  const auto loss =
      Object<L>("EventLoss",
                {MakeField("stage", &L::stage, reason, "Where, such as ring or relay.", kRequired),
                 MakeField("reason", &L::reason, reason, "Why, such as full.", kRequired),
                 MakeField("count", &L::count, Count(), "How many events.", kRequired)});
  return Object<T>(
      "EventCounts",
      {MakeField("recorded", &T::recorded, Count(), "Events that reached a buffer.", kAlways),
       MakeField("delivered", &T::delivered, Count(), "Events that the relay has stored.", kAlways),
       MakeField("discarded", &T::discarded, Count(), "Events that found no room in a buffer.",
                 kAlways),
       MakeField("overwritten", &T::overwritten, Count(),
                 "Events that gave way to newer ones, in overwrite mode.", kAlways),
       MakeField("lost", &T::lost, Count(), "Events that were recorded and lost on the way.",
                 kAlways),
       MakeField("missing", &T::missing, Count(),
                 "Discarded and lost events: what happened and cannot be read.", kAlways),
       MakeField("reasons", &T::reasons, ListOf(loss, limits::kReasons),
                 "The discarded, overwritten and lost events by stage and reason.")});
}

TypePtr<Segment> SegmentSchema() {
  using T = Segment;
  return Object<T>(
      "Segment",
      {MakeField("relay", &T::relay, Text(limits::kDnsSubdomain), "The relay.", kRequired),
       MakeField("from", &T::from, Time(), "When it took over.", kRequired),
       MakeField("to", &T::to, Time(), "When it gave up. Absent: it still has the Trace.")});
}

}  // namespace

TypePtr<TraceStatus> StatusSchema() {
  using T = TraceStatus;
  static const TypePtr<T>& schema = *new TypePtr<T>(Object<T>(
      "TraceStatus",
      {MakeField("observedGeneration", &T::observed_generation, Count(),
                 "Generation of the spec that this status is about."),
       MakeField("phase", &T::phase, Enum<Phase>(kPhases),
                 "Where the Trace is in its life. The conditions say more.", kAlways),
       MakeField("conditions", &T::conditions,
                 ListOf(ConditionSchema(), limits::kConditions, ListKind::kMapByType),
                 "Standard conditions."),
       MakeField("relay", &T::relay, Text(limits::kDnsSubdomain),
                 "The relay that stores the Trace."),
       MakeField("startTime", &T::start_time, Time(), "When recording began."),
       MakeField("deadline", &T::deadline, Time(), "When it will end: start plus duration."),
       MakeField("completionTime", &T::completion_time, Time(), "When it ended."),
       MakeField("pods", &T::pods, PodsSchema(), "The pods, counted.", kAlways),
       MakeField("events", &T::events, EventsSchema(),
                 "The events, counted. recorded = delivered + overwritten + lost + in flight.",
                 kAlways),
       MakeField("segments", &T::segments, ListOf(SegmentSchema(), limits::kSegments),
                 "The relays that have had the Trace, in order.")}));
  return schema;
}

TypePtr<SessionStatus> SessionStatusSchema() {
  using T = SessionStatus;
  static const TypePtr<T>& schema = *new TypePtr<T>(
      Object<T>("TraceSessionStatus",
                {MakeField("observedGeneration", &T::observed_generation, Count(),
                           "Generation of the session that this status is about."),
                 MakeField("phase", &T::phase, Enum<Phase>(kPhases),
                           "What the node does for the Trace.", kAlways),
                 MakeField("conditions", &T::conditions,
                           ListOf(ConditionSchema(), limits::kConditions, ListKind::kMapByType),
                           "Ready, Drained, KernelTracing."),
                 MakeField("pods", &T::pods, PodsSchema(),
                           "The node's selected pods that have the library, counted."),
                 MakeField("events", &T::events, EventsSchema(),
                           "The node's events, counted when phase or a condition changes.")}));
  return schema;
}

}  // namespace weft::api
