// SPDX-License-Identifier: Apache-2.0
// See cgroup.h. Source of the format: cgroups(7).
#include "lib/base/cgroup.h"

#include <unistd.h>

#include <fstream>

namespace weft {

void RemoveCgroup(const std::string& folder) {
  const std::string parent = folder.substr(0, folder.rfind('/'));
  std::ifstream in(folder + "/cgroup.procs");
  for (std::string pid; std::getline(in, pid);) {
    std::ofstream out(parent + "/cgroup.procs");
    out << pid << '\n';
  }
  rmdir(folder.c_str());
}

}  // namespace weft
