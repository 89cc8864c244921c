// SPDX-License-Identifier: Apache-2.0
// The status of a Trace. Only weft writes it (the controller, or `weft record` in
// local mode). Counts obey two equations: emitted = recorded + discarded, and
// recorded = delivered + overwritten + lost + in flight. Thread-safety: plain
// values.
#ifndef WEFT_LIB_API_STATUS_H_
#define WEFT_LIB_API_STATUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::api {

enum class Phase {
  kPending,  // accepted, not yet recording everywhere (or an API server just stored it)
  kRecording,
  kPaused,
  kDraining,   // no new events; what was recorded is still on its way
  kCompleted,  // duration is over, everything is delivered or counted
  kFailed,     // nothing is recorded; the conditions say why
};

enum class ConditionStatus { kTrue, kFalse, kUnknown };

// Types of conditions that weft sets.
inline constexpr std::string_view kConditionAccepted = "Accepted";  // the spec can be acted on
inline constexpr std::string_view kConditionReady = "Ready";        // START reached every node
inline constexpr std::string_view kConditionDrained = "Drained";    // nothing is in flight
inline constexpr std::string_view kConditionKernelTracing = "KernelTracing";
inline constexpr std::string_view kConditionRelayAvailable = "RelayAvailable";
inline constexpr std::string_view kConditionReceiving = "Receiving";  // the relay has events
// False: buffers of some containers are smaller than the Trace asks for.
inline constexpr std::string_view kConditionBuffersGranted = "BuffersGranted";
// False: some functions that the Trace names are not hooked in some processes.
inline constexpr std::string_view kConditionFunctionsHooked = "FunctionsHooked";
// False: some or all running programs of a Trace with attach did not get the library.
inline constexpr std::string_view kConditionProcessesAttached = "ProcessesAttached";
// False: the images of some containers set LD_PRELOAD, which weft's replaces.
inline constexpr std::string_view kConditionPreloadKept = "PreloadKept";
// False: on some nodes, the namespace's consumer exceeded its memory limit lately.
inline constexpr std::string_view kConditionConsumerHealthy = "ConsumerHealthy";
// False: while the Trace recorded, some nodes were without an agent for a while.
inline constexpr std::string_view kConditionAgentStayed = "AgentStayed";

// metav1.Condition.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::int64_t observed_generation = 0;
  std::string last_transition_time;  // RFC 3339
  std::string reason;                // CamelCase
  std::string message;
  bool operator==(const Condition&) const = default;
};

// Pods that are not traced for one reason (P4: the status says which and why).
struct SkippedPods {
  std::string reason;
  std::string message;
  std::int64_t count = 0;
  std::vector<std::string> names;  // some of them, at most limits::kSkippedPodNames
  bool operator==(const SkippedPods&) const = default;
};

// What a node's programs offer for one rule of spec.user.events.
struct EventRuleState {
  std::string event;    // the rule's name
  std::string problem;  // what no running program offers (lib/api/rule_check.h); "": they offer it
  bool operator==(const EventRuleState&) const = default;
};

struct PodCounts {
  std::int64_t matched = 0;
  std::int64_t traced = 0;
  std::vector<SkippedPods> skipped;
  bool operator==(const PodCounts&) const = default;
};

// One stage and reason for which events did not arrive.
struct EventLoss {
  std::string stage;
  std::string reason;
  std::int64_t count = 0;
  bool operator==(const EventLoss&) const = default;
};

struct EventCounts {
  std::int64_t recorded = 0;
  std::int64_t delivered = 0;
  std::int64_t discarded = 0;    // never written: buffers full, no memory, too large
  std::int64_t overwritten = 0;  // by newer ones, in overwrite mode
  std::int64_t lost = 0;         // written, and lost on the way
  std::int64_t missing = 0;      // discarded + lost: the column "Lost"
  std::vector<EventLoss> reasons;
  bool operator==(const EventCounts&) const = default;
};

// Sessions of a Trace that do not exist any more. `uids` makes each of them count once: a session
// that is still there and is named here is in `events` already.
struct RemovedSessions {
  EventCounts events;             // the sum of their last reports
  std::vector<std::string> uids;  // of the last ones, at most limits::kRemovedSessions, in order
  bool operator==(const RemovedSessions&) const = default;
};

// A relay kept the Trace from one time to another.
struct Segment {
  std::string relay;
  std::string from;  // RFC 3339
  std::string to;    // RFC 3339; "": still open
  bool operator==(const Segment&) const = default;
};

// What the relay has of the Trace. The relay writes it, once it has removed something.
struct StorageStatus {
  std::int64_t removed_events = 0;
  std::int64_t kept_bytes = 0;  // when it removed something last
  bool operator==(const StorageStatus&) const = default;
};

struct TraceStatus {
  std::int64_t observed_generation = 0;
  Phase phase = Phase::kPending;
  std::vector<Condition> conditions;
  std::string relay;
  std::string folder;      // at the relay
  std::string start_time;  // RFC 3339, as the next two
  std::string deadline;    // start plus duration
  std::string completion_time;
  PodCounts pods;
  EventCounts events;  // of all sessions there ever were; no count ever falls
  RemovedSessions removed_sessions;
  std::vector<Segment> segments;
  StorageStatus storage;
  bool operator==(const TraceStatus&) const = default;
};

}  // namespace weft::api

#endif  // WEFT_LIB_API_STATUS_H_
