// SPDX-License-Identifier: Apache-2.0
// A TraceSession: what one node shall do for one Trace (spec, written by the controller), and what
// it does (status, written by that node's agent). There is one per Trace and node, in the Trace's
// namespace. The Trace owns it, so that Kubernetes deletes both together. The sessions of a
// ClusterTrace are in weft's own namespace. A session holds no secrets, since every agent can read
// all sessions.
// Life: the controller makes a session Active when a pod of the node matches, and Draining when the
// Trace ends (deadline or deletion). The agent reports Drained when none of its events is in
// flight. A session that is deleted while its Trace goes on ends in this way, too: its finalizer
// keeps it until the Trace's status has its counts, and a new session follows it.
// Thread-safety: plain values and pure functions.
#ifndef WEFT_LIB_API_SESSION_H_
#define WEFT_LIB_API_SESSION_H_

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/diagnostic.h"
#include "lib/api/parse.h"
#include "lib/api/status.h"
#include "lib/api/trace.h"

namespace weft::api {

inline constexpr std::string_view kSessionKind = "TraceSession";
// A label on every session: the Trace's name.
inline constexpr std::string_view kTraceLabel = "weft.dev/trace";

enum class SessionState {
  kActive,
  kDraining,  // record nothing new; deliver what there is, then say Drained
};

// The addresses to which the node sends, each "host:port" as a resolver takes it.
struct RelayEndpoints {
  std::string name;  // of the relay's pod, as in Trace.status.relay
  std::string control;
  std::string data;
  bool operator==(const RelayEndpoints&) const = default;
};

struct SessionSpec {
  std::string node_name;              // never changes
  std::string trace_name;             // never changes
  std::string trace_uid;              // never changes; of the Trace's metadata
  std::int64_t trace_generation = 0;  // that `record` was taken from
  SessionState state = SessionState::kActive;
  RelayEndpoints relay;
  std::string deadline;       // RFC 3339, "": none
  bool cluster_wide = false;  // of a ClusterTrace: all tasks of the node
  TraceSpec record;           // the Trace's spec as it is
  bool operator==(const SessionSpec&) const = default;
};

// pods counts pods of this node that record.pods selects and that have the library; the controller
// tells of all others. Written when phase or a condition changes, at the end, and for changed
// counts alone every few seconds. No count ever falls: an agent that lost its state goes on from
// the counts that it finds here.
struct SessionStatus {
  std::int64_t observed_generation = 0;  // of the session's metadata
  Phase phase = Phase::kPending;
  std::vector<Condition> conditions;  // all but Accepted and Receiving
  PodCounts pods;
  EventCounts events;
  // In the order of record.user.events; empty: not known yet.
  std::vector<EventRuleState> event_rules;
  bool operator==(const SessionStatus&) const = default;
};

struct TraceSession {
  Metadata metadata;
  SessionSpec spec;
  SessionStatus status;
  bool operator==(const TraceSession&) const = default;
};

// Returns the name of a session: the Trace's, and a hash of the node's, whose name alone may be too
// long.
std::string SessionName(std::string_view trace, std::string_view node, bool cluster_wide = false);

// nullptr: there is no such condition.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

// Is the condition there and True?
bool IsTrue(const std::vector<Condition>& conditions, std::string_view type);

// Parses one session from the API server's JSON. Unknown fields are refused unless `options` says
// otherwise.
std::expected<TraceSession, Diagnostics> ParseSession(std::string_view text,
                                                      const ParseOptions& options = {});

// Returns why an agent of the weft in `own_namespace` does not follow a session that its controller
// cannot have made; "": it may follow it. Such a session records whole nodes outside of that
// namespace, or sends to another host than a pod of its Service weft-relay. The chart's policies
// refuse it, too.
std::string WhyForeign(const TraceSession& session, std::string_view own_namespace);

std::string ToJson(const TraceSession& session, int indent = -1);
// {"status": {...}}
std::string StatusToJson(const SessionStatus& status);

}  // namespace weft::api

#endif  // WEFT_LIB_API_SESSION_H_
