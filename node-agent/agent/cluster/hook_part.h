// SPDX-License-Identifier: Apache-2.0
// Hooks on functions of pods' programs (docs/adr/0056, 0058): tells the services which containers
// have which rules, and sessions what is refused. Each namespace has a service, which is a thread,
// if a session records functions there, or if a program there has the library from an agent: when
// no session with `attach` records it any more, it gets back what was changed in it
// (docs/adr/0069).
//
// Invariants:
//   1. A namespace's service ends only when it has taken off all hooks of its containers, also
//      those of a thread that it had left behind (docs/adr/0068).
//   2. After the agent's start, each namespace of a restored session that recorded functions has a
//      service, also where no session asks for functions any more: an agent that died may have
//      left hooks.
//   3. A container is given back only when all channels of sessions with `attach` are drained
//      there. AttachPart gives it the library again only when MayAttach says so: what is given back
//      later than that would be silent.
//
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_HOOK_PART_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_HOOK_PART_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/base/log_rate.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/hooks/hook_service.h"

namespace weft::agent {

class HookPart {
 public:
  using Note = std::function<void(std::string)>;  // a message for people

  // All outlive this.
  HookPart(Agent& agent, const PodTable& pods, Note note)
      : agent_(agent), pods_(pods), note_(std::move(note)) {}

  // Call it when the sessions of the agent before are restored.
  void Restored();
  // Call it when sessions, channels or pods changed.
  void Settle();
  // Notes processes whose functions stay changed. True: a service has something to tell, or
  // containers wait no more, and sessions are to be settled.
  bool Poll();
  // May processes of a container (ContainerKey) get the library? Not while a process of its pod may
  // still be given back what was changed in it for an earlier session.
  [[nodiscard]] bool MayAttach(const std::string& container) const {
    return !waiting_.contains(container);
  }
  // Processes of a namespace got the library: functions of theirs can be hooked from now on.
  void LookAgain(const std::string& name_space);

 private:
  struct Service {
    explicit Service(hooks::HookService::PodOf pod_of) : hooks(std::move(pod_of)) {}
    hooks::HookService hooks;
    uint64_t told = 0;    // its news that are in the sessions
    std::string problem;  // that was noted last
  };
  using Rules = std::map<std::string, std::vector<hooks::HookRule>>;  // by container
  struct Place {
    std::string name_space, pod_uid;
  };
  using Containers = std::map<std::string, Place>;

  [[nodiscard]] Containers AttachedContainers() const;
  void SettleAttached();
  // Returns those with a process that an agent gave the library.
  [[nodiscard]] std::set<std::string> NamespacesWithLibrary() const;
  [[nodiscard]] std::vector<hooks::HookedContainer> ContainersOf(const std::string& name_space,
                                                                 const Rules& rules) const;

  Agent& agent_;
  const PodTable& pods_;
  const Note note_;
  LogRate notes_{kNotesPerSecond, kNotesAtOnce, kMaxNoted};   // by namespace
  std::map<std::string, std::unique_ptr<Service>> services_;  // by namespace
  // Containers that sessions with `attach` record, until their channels are drained.
  Containers attached_;
  // Those of them that were not, until the service does nothing more for the time before.
  Containers waiting_;
  bool may_attach_more_ = false;  // since the last Poll
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_HOOK_PART_H_
