// SPDX-License-Identifier: Apache-2.0
// Traces with spec.user.attach: gives libweft.so to the running processes of the containers that
// they record and that were made without it (docs/adr/0064), and tells sessions what is refused.
// Each namespace has a service, which is a thread, as long as such a session records there, or a
// process was left behind in a load.
//
// The library makes a control area of its own in such a process. The finder adopts it, as that of a
// process which is older than its agent, and finds its ring sets.
//
// Invariant: only containers that an active session has a channel for are served, and only such
// that AttachPolicy allows. One waits until its processes were given back what an earlier session
// changed in them (HookPart).
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_PART_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_PART_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "node-agent/agent/cluster/attach_service.h"
#include "node-agent/agent/cluster/hook_part.h"
#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/core/agent.h"

namespace weft::agent {

class AttachPart {
 public:
  // All outlive this.
  AttachPart(Agent& agent, const PodTable& pods, HookPart& hooks)
      : agent_(agent), pods_(pods), hooks_(hooks) {}

  // Call it when sessions, channels or pods changed.
  void Settle();
  // Adopts the control areas of processes that got the library. True: a service has something to
  // tell, and sessions are to be settled.
  bool Poll();

 private:
  struct Service {
    explicit Service(AttachService::Load load) : attach(PlaceOf, std::move(load)) {}
    AttachService attach;
    uint64_t told = 0;  // its news that are in the sessions
  };

  void Tell(Session& session);

  Agent& agent_;
  const PodTable& pods_;
  HookPart& hooks_;
  std::map<std::string, std::unique_ptr<Service>> services_;  // by namespace
  // Containers with a process that has the library, of which no control area was adopted, as told
  // last; why the last area that was not adopted was not.
  std::set<std::string> not_adopted_;
  std::string why_not_adopted_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_ATTACH_PART_H_
