// SPDX-License-Identifier: Apache-2.0
// See cgroup_mount.h.
#include "node-agent/agent/base/cgroup_mount.h"

#include <fstream>
#include <sstream>

namespace weft::agent {

// ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS... - TYPE SOURCE OPTIONS (proc(5)).
std::optional<std::string> CgroupMount(const std::string& mountinfo) {
  std::ifstream in(mountinfo);
  for (std::string line; std::getline(in, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    if (words >> id >> parent >> device >> root >> point && root == "/") return point;
  }
  return std::nullopt;
}

}  // namespace weft::agent
