// SPDX-License-Identifier: Apache-2.0
// Builds the status of a TraceSession from the agent's session. Pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_REPORT_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_REPORT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/api/session.h"
#include "lib/kube/time.h"
#include "node-agent/agent/cluster/kernel_support.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {

// The session's pods of this node that have the library, or may get it (user.attach); where it
// records nothing but the kernel, all of them.
struct SelectedPods {
  std::map<std::string, bool> reachable;  // uid -> its containers can be told; its cgroup is there
  std::map<std::string, std::string> names;
  // Why no process of a pod has the library, though its containers can be told.
  struct Reason {
    std::string reason, message;  // of api::SkippedPods
  };
  std::map<std::string, Reason> without_library;
  // Pods of a session with attach none of whose containers may be recorded.
  std::set<std::string> untouched;
  std::string attach_refusal;  // why programs that run without the library are not recorded; "": no
  // LD_PRELOAD of an image that weft's replaces -> "POD/CONTAINER" of those that have the image.
  std::map<std::string, std::vector<std::string>> replaced_preloads;
};

// `consumer`: what is wrong with the session's consumer (consumer_deaths.h); "": nothing.
api::SessionStatus MakeStatus(const Session& session, const SelectedPods& pods,
                              const KernelState& kernel, kube::WallTime now,
                              const std::string& consumer = "");
// Nothing of the order can be done here, and why. `before`: the session that recorded an earlier
// version of the order; null: there was none.
api::SessionStatus MakeFailedStatus(const api::TraceSession& order, const std::string& failure,
                                    kube::WallTime now, const Session* before = nullptr);

// Whether nothing of the session is in flight and nothing will come: it may say Drained.
bool IsDrained(const Session& session);

// Phase, conditions or pods are others; counts alone do not matter.
bool DiffersBeyondCounts(const api::SessionStatus& a, const api::SessionStatus& b);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_REPORT_H_
