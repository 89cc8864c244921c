// SPDX-License-Identifier: Apache-2.0
// Builds a Trace's status from its pods and its sessions. Internal to reconcile/. Thread-safety:
// pure functions.
#ifndef WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_
#define WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_

#include <string>
#include <vector>

#include "controller/reconcile/plan.h"

namespace weft::controller {

// The pods that the Trace selects and that are not over.
std::vector<const PodFacts*> SelectedPods(const Situation& situation);

// Whether the pod could have the library, and was made before it was there.
bool MissedTheLibrary(const PodFacts& pod, const NamespaceFacts& name_space);

// Matched are all selected pods; traced what the nodes say; skipped those without the library, with
// the command that restarts them, and what the nodes say.
api::PodCounts CountPods(const Situation& situation, const std::vector<const PodFacts*>& selected);

// The sums of the sessions' counts.
api::EventCounts CountEvents(const std::vector<api::TraceSession>& sessions);

// Sets a condition; its time changes with its status only.
void SetCondition(std::vector<api::Condition>& conditions, api::Condition condition,
                  kube::WallTime now);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_TRACE_STATUS_H_
