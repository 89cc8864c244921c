// SPDX-License-Identifier: Apache-2.0
// Finds the place where cgroup v2 is mounted. A function without state.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_CGROUP_MOUNT_H_
#define WEFT_NODE_AGENT_AGENT_BASE_CGROUP_MOUNT_H_

#include <optional>
#include <string>

namespace weft::agent {

// Returns the mount point of the whole hierarchy, from a process's file `mountinfo`; std::nullopt:
// it is not mounted there, or only a part of it is.
std::optional<std::string> CgroupMount(const std::string& mountinfo);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_CGROUP_MOUNT_H_
