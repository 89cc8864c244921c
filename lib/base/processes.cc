// SPDX-License-Identifier: Apache-2.0
// See processes.h.
#include "lib/base/processes.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weft {

std::vector<int32_t> AllProcesses() {
  std::vector<int32_t> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (const dirent* entry = readdir(dir)) {
    int32_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  std::ranges::sort(pids);
  return pids;
}

}  // namespace weft
