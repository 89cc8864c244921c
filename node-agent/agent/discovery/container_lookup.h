// SPDX-License-Identifier: Apache-2.0
// Finds the container of a process. In local mode all processes are in the one container; on a
// node of a cluster the kernel's cgroups tell. All calls are in the agent's loop.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINER_LOOKUP_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINER_LOOKUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/unique_fd.h"

namespace weft::agent {

// A process that has a ring set, with the ids that the kernel reports.
struct CallerId {
  const std::string* doorbell = nullptr;  // the doorbell it called at; null: the finder found it
  int32_t pid = 0;
  const UniqueFd* pidfd = nullptr;
};

class ContainerLookup {
 public:
  virtual ~ContainerLookup() = default;

  // May a ring set of this container come from that process?
  virtual bool Belongs(const std::string& container, const CallerId& caller) = 0;
  // Returns the key of the container that a process is in; std::nullopt: it is in none that this
  // agent records.
  virtual std::optional<std::string> ContainerOf(int32_t pid) = 0;
  // Returns the namespace of a container that ContainerOf returned; "": there are no namespaces.
  virtual std::string OwnerOf(const std::string& /*container*/) { return ""; }
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_CONTAINER_LOOKUP_H_
