// SPDX-License-Identifier: Apache-2.0
// Builds a Trace's status from its pods and its sessions. Internal to reconcile/. Thread-safety:
// pure functions.
#ifndef WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_
#define WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_

#include <string>
#include <vector>

#include "controller/reconcile/plan.h"

namespace weft::controller {

inline constexpr std::string_view kNotAllowed = "NotAllowed";  // of kConditionProcessesAttached

// The pods that the Trace selects and that are not over.
std::vector<const PodFacts*> SelectedPods(const Situation& situation);

// Whether the pod could have the library, and was made before it was there.
bool MissedTheLibrary(const PodFacts& pod, const Situation& situation);

// Whether something of a selected pod can be recorded, as far as the API server's objects tell.
bool CanBeTraced(const PodFacts& pod, const Situation& situation);

// Whether an agent counts a selected pod as matched, once it has heard of it.
bool IsMatchedByAgents(const PodFacts& pod, const Situation& situation);

// The names in spec.pods.containers that no selected pod has, or has as ephemeral containers only,
// in words; "": there is none.
std::string DescribeUnknownContainers(const Situation& situation,
                                      const std::vector<const PodFacts*>& selected);

// Returns why no running program of the Trace's namespace gets the library; "": no word forbids it.
std::string WhyNotAttached(const Situation& situation);

// Does a node give the library to running programs of pods that were made without it? Nodes that
// have not answered yet do.
bool Attaches(const Situation& situation);

// Matched are all selected pods; traced what the nodes say; skipped those without a container that
// the Trace selects, those without the library, with the command that restarts them, unless the
// Trace attaches, and what the nodes say.
api::PodCounts CountPods(const Situation& situation, const std::vector<const PodFacts*>& selected);

// Whether the session's node reports that nothing of it is in flight.
bool IsDrained(const api::TraceSession& session);

// Whether the session's counts are among those of the removed sessions.
bool IsRemoved(const api::RemovedSessions& removed, const api::TraceSession& session);

// Takes the last counts of a session that is about to be removed into `removed`. If the session is
// not drained, its events in flight count as lost (node/gone): its node will not report on them.
// `sessions` are all that exist. False: `removed` has no room, since too many sessions that it
// names still exist.
[[nodiscard]] bool Remove(api::RemovedSessions& removed, const api::TraceSession& session,
                          const std::vector<api::TraceSession>& sessions);

// The counts of all sessions, each once: of those that exist and of those that were removed.
api::EventCounts CountEvents(const std::vector<api::TraceSession>& sessions,
                             const api::RemovedSessions& removed);

// Returns the problems of the rules that no node offers, as the agents describe them; "": there are
// none, or a node with traced pods does not know yet. `sessions`: those that count.
std::string DescribeNotOffered(const std::vector<api::EventRule>& rules,
                               const std::vector<const api::TraceSession*>& sessions);

// Sets a condition; its time changes with its status only.
void SetCondition(std::vector<api::Condition>& conditions, api::Condition condition,
                  kube::WallTime now);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_
