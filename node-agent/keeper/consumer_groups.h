// SPDX-License-Identifier: Apache-2.0
// Control groups of a node's consumers: each consumer has a memory limit of its own, so that one
// which exceeds it is killed alone. Below the keeper's own group, GROUP:
//
//     GROUP/weft                              keeper and agent (version 2 only)
//     GROUP/consumers                         three quarters of GROUP's limit
//     GROUP/consumers/consumer-NAMESPACE      one consumer, with its limit
//
// Invariants:
//   1. In version 2 no process is in GROUP itself, since a group that gives controllers to groups
//      below it must have none (cgroups(7), "no internal processes"). The container's runtime puts
//      what it starts later (exec) into the group of the container's first process.
//   2. What the consumers use together never makes the kernel kill in GROUP, where it would kill
//      keeper and agent too.
//   3. A group begins with its consumer and is removed after its end. When the container ends, its
//      runtime removes GROUP with all groups below.
// The keeper's thread owns it.
#ifndef WEFT_NODE_AGENT_KEEPER_CONSUMER_GROUPS_H_
#define WEFT_NODE_AGENT_KEEPER_CONSUMER_GROUPS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/base/cgroup.h"
#include "lib/base/result.h"

namespace weft::keeper {

class ConsumerGroups {
 public:
  // No groups: consumers stay where the keeper is, and share its limit.
  ConsumerGroups() = default;
  // Makes them below `own`, which is this process's group, and moves this process into GROUP/weft.
  // `memory`: bytes that each consumer may use. On an error everything is as before. kUnsupported:
  // there is no memory controller that can be used here.
  static Result<ConsumerGroups> Make(const MemoryCgroup& own, uint64_t memory);

  // Puts a consumer that was just started into a group of its own.
  Status Enter(const std::string& name, pid_t pid);
  // A consumer ended, and was waited for: removes its group. Returns whether the kernel killed it
  // for its memory.
  bool Leave(const std::string& name);

  [[nodiscard]] bool is_on() const { return !folder_.empty(); }
  [[nodiscard]] uint64_t memory() const { return memory_; }

 private:
  ConsumerGroups(std::string folder, bool is_version_1, uint64_t memory)
      : folder_(std::move(folder)), is_version_1_(is_version_1), memory_(memory) {}

  [[nodiscard]] std::string FolderOf(const std::string& name) const;
  [[nodiscard]] uint64_t KillsIn(const std::string& group) const;

  std::string folder_;  // GROUP/consumers
  bool is_version_1_ = false;
  uint64_t memory_ = 0;
  std::map<std::string, uint64_t> kills_before_;  // by name, of those that run
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_CONSUMER_GROUPS_H_
