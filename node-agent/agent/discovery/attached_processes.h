// SPDX-License-Identifier: Apache-2.0
// The processes from which the members of a session descend, in local mode: the ones that weft
// record --pid names, or what starts the program. The finder looks at each of them and at its
// descendants until it ends.
//
// Invariant: the keeper has a pidfd of each process that was added, under "root/PID", until
// RemoveAll. The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_ATTACHED_PROCESSES_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_ATTACHED_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/discovery/control_areas.h"
#include "node-agent/agent/discovery/finder.h"

namespace weft::agent {

class AttachedProcesses {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper

  // Loads libweft.so into a running process, or, in one that has it, ends what an agent left.
  using Load = std::function<Status(int32_t pid)>;

  // `finder` and `areas` must outlive this object.
  AttachedProcesses(Finder& finder, ControlAreas& areas, Send keeper)
      : finder_(finder), areas_(areas), keeper_(std::move(keeper)) {}

  // Attaches to these processes, which run already, by `load`.
  // Processes that end meanwhile are left out. kPermission: this agent may not look into other
  // processes; kNotFound: all have ended; kInvalid and what `load` returns: one of them cannot be
  // recorded. Call RemoveAll after an error.
  Status Attach(const std::vector<int32_t>& pids, const Load& load);
  // Adds the process that started the keeper, where it is there: it starts the program.
  void AddStarter();
  // Removes these processes, and the control areas that were adopted.
  void RemoveAll(const std::vector<int32_t>& pids);
  // Takes a process that the keeper kept; false: it is none.
  bool TakeKept(ipc::Kept& kept);

 private:
  void Add(int32_t pid, UniqueFd pidfd);

  Finder& finder_;
  ControlAreas& areas_;
  const Send keeper_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_ATTACHED_PROCESSES_H_
