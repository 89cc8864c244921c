// SPDX-License-Identifier: Apache-2.0
// Finds and removes control groups. Stateless functions.
#ifndef WEFT_LIB_BASE_CGROUP_H_
#define WEFT_LIB_BASE_CGROUP_H_

#include <optional>
#include <string>

namespace weft {

// Removes a cgroup (v2) that weft made. Processes that are still in it go to the one above. Best
// effort: what is not there is no error.
void RemoveCgroup(const std::string& folder);

// The control group that limits a process's memory.
struct MemoryCgroup {
  bool is_version_1 = false;
  std::string mount;   // where its hierarchy, or a part of it, is mounted
  std::string folder;  // below or at `mount`
};

// The one of the process whose folder in /proc is `proc`. Version 1's if its memory controller is
// mounted, else version 2's. None: neither is mounted, or the mounted part does not contain it.
// Source of the formats: proc(5), cgroups(7).
std::optional<MemoryCgroup> FindMemoryCgroup(const std::string& proc = "/proc/self");

}  // namespace weft

#endif  // WEFT_LIB_BASE_CGROUP_H_
