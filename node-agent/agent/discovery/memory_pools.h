// SPDX-License-Identifier: Apache-2.0
// The memory pools of containers (lib/abi/control.h): a FIFO with a byte for each unit of memory
// that ring sets of the container may still use. Processes take bytes out by themselves, also while
// the agent is away. The agent puts them back when a ring set uses less, or is gone.
//
// Invariants:
//   1. Pool and known ring sets together never stay above what the container's rings may use: the
//      next Compare takes the excess out.
//   2. Memory that a process took and that no known ring set has is put back after two Compares in
//      a row have missed it. The process died before it announced its ring set, or took more than
//      it needed.
//   3. The keeper has a copy of each FIFO, so that its bytes outlive the agent.
// A container can empty or fill its own pool: the memory is charged to no other one. The agent's
// thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_POOLS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_POOLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

class MemoryPools {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper
  // Calls `visit` for every known ring set, with the bytes that it may use.
  using Visit = std::function<void(const std::string& container, uint64_t bytes)>;
  using RingSets = std::function<void(const Visit& visit)>;

  MemoryPools(Send keeper, RingSets ring_sets)
      : keeper_(std::move(keeper)), ring_sets_(std::move(ring_sets)) {}

  // Makes the container's pool PATH for this budget (session/ring_grant.h), or goes on with the one
  // that is there. An open pool gets the new budget. 0: there is no limit, and no pool.
  Status Open(const std::string& container, const std::string& path, uint64_t budget);
  void Close(const std::string& container);
  // Notes that a ring set of the container uses at most `after` bytes from now on; before, it used
  // `before`.
  void Return(const std::string& container, uint64_t before, uint64_t after);
  // Compares all pools with the known ring sets; every kLookInterval.
  void Compare();
  [[nodiscard]] bool Has(const std::string& container) const { return pools_.contains(container); }
  // Less than half of what the container's ring sets may use is free.
  [[nodiscard]] bool IsShort(const std::string& container) const;
  // Takes a FIFO that the keeper kept; false: it is none.
  bool TakeKept(const ipc::Kept& kept);

 private:
  struct Pool {
    UniqueFd fifo;
    uint64_t budget = 0;
    uint64_t missing = 0;  // units that the last Compare missed
    uint64_t taken = 0;    // units of known ring sets, in CountTaken
  };

  void CountTaken();
  // Returns what the pool has while no process is about to make a ring set.
  static uint64_t Rest(const Pool& pool);
  static void Put(const Pool& pool, uint64_t units);

  const Send keeper_;
  const RingSets ring_sets_;
  std::map<std::string, Pool> pools_;  // by container
  std::set<std::string> kept_;         // whose FIFOs the keeper had at the agent's start
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_MEMORY_POOLS_H_
