// SPDX-License-Identifier: Apache-2.0
// The cgroup of a program that `weft record` starts to record kernel events: weft.ko decides by
// cgroup (v2) which tasks it records, and the program's children are in it too. lib/base/cgroup.h
// removes it. Functions without state. Needs root, as the module does.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_PROGRAM_CGROUP_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_PROGRAM_CGROUP_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"

namespace weft::agent {

// Makes a cgroup beneath this process's own; returns its folder. kUnsupported: there is no cgroup
// v2 here (where cgroup2 is not mounted).
Result<std::string> MakeProgramCgroup(const std::string& name);
// Returns the number of the cgroup of a folder of cgroup2.
Result<uint64_t> CgroupId(const std::string& folder);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_PROGRAM_CGROUP_H_
