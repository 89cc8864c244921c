// SPDX-License-Identifier: Apache-2.0
// Decides what to do about one Trace from everything that the controller knows. It is a pure
// function, so that a repeated call, or a restart in the middle, leads to the same result.
//
//   Trace --> finalizer --> a session per node with selected pods --> status from the sessions
//   ClusterTrace --> finalizer --> a session per selected node, in weft's own namespace --> status
//   deadline or deletion --> sessions Draining --> all Drained --> finalizer removed, Completed
//   weft is being removed --> the same, but the sessions are removed, and the Trace is as before
//   its first session
//   session deleted by someone --> Draining --> Drained --> removed --> a new one for its node
//   node gone --> session removed
//
// Invariants:
//   1. A Trace has the finalizer only while it has a session that is not drained.
//   2. A session has the finalizer until the end of its Trace. One that leaves before that is
//      removed only after the Trace's status has its counts (status.removedSessions), so that each
//      session counts exactly once, whatever controller acts.
//   3. No count of status.events ever falls.
//
// Thread-safety: pure functions.
#ifndef WEFT_CONTROLLER_RECONCILE_PLAN_H_
#define WEFT_CONTROLLER_RECONCILE_PLAN_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/reconcile/facts.h"
#include "lib/api/session.h"
#include "lib/api/trace.h"
#include "lib/kube/time.h"

namespace weft::controller {

// The finalizer of Traces and of their sessions: neither goes before its events are drained and
// counted.
inline constexpr std::string_view kFinalizer = "weft.dev/drain";
// A node that does not answer keeps a deleted Trace, or the removal of weft, no longer than this.
inline constexpr std::chrono::seconds kDrainLimit{60};
// After this long without any answer to a new session, no agent counts as running on its node, and
// pods that its agent has not heard of keep it from being ready no longer.
inline constexpr std::chrono::seconds kAgentSilent{10};

// Pods that were made up to this long after their Trace are evicted where that was asked for: those
// that come in their place are made later, so that none is evicted again and again.
inline constexpr std::chrono::seconds kRestartWindow{30};
// By then the library is in the namespace, and the webhook knows.
inline constexpr std::chrono::seconds kRestartAge{5};

// The reason of a problem that ends when other Traces are deleted, and how soon that is seen.
inline constexpr const char* kTooManyTraces = "TooManyTraces";
inline constexpr std::chrono::seconds kTooManyAgain{10};

struct Situation {
  api::Trace trace;
  std::string problem;  // why the Trace cannot be acted on; "": it can
  std::string problem_reason = "InvalidSpec";
  NamespaceFacts name_space;
  std::vector<PodFacts> pods;               // of the namespace
  std::vector<api::TraceSession> sessions;  // of the Trace
  std::map<std::string, NodeFacts> nodes;   // all, by name
  std::string own_namespace;                // weft's
  api::LabelSelector served_namespaces;     // others get no library
  api::RelayEndpoints relay;
  kube::WallTime now;
  std::optional<kube::WallTime> uninstalling_since;  // weft is being removed from the cluster
};

// Traces of no namespace are ClusterTraces.
inline bool IsClusterWide(const api::Trace& trace) { return trace.metadata.name_space.empty(); }
// Where the Trace's sessions are.
inline const std::string& SessionNamespace(const Situation& situation) {
  return IsClusterWide(situation.trace) ? situation.own_namespace
                                        : situation.trace.metadata.name_space;
}

struct Note {
  bool warning = false;
  std::string reason;
  std::string text;
  bool operator==(const Note&) const = default;
};

struct Plan {
  bool add_finalizer = false;
  bool remove_finalizer = false;
  std::vector<api::TraceSession> apply;  // to be made, or to have this spec
  // Sessions to be removed, once `status` is written: it has their counts.
  std::vector<std::string> remove;
  std::vector<std::string> evict;  // pods that missed the library
  api::TraceStatus status;
  std::vector<Note> notes;              // Events: what is new in the status
  std::optional<kube::WallTime> again;  // look again then, also if nothing changes
};

Plan MakePlan(const Situation& situation);

// At most five of the names, with commas between them.
std::string Join(const std::vector<std::string>& names);

bool HasFinalizer(const api::Metadata& metadata);

// Whether two statuses differ in more than their counts of events.
bool DiffersBeyondCounts(const api::TraceStatus& a, const api::TraceStatus& b);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_PLAN_H_
