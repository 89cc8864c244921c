// SPDX-License-Identifier: Apache-2.0
// See processes.h.
#include "lib/base/processes.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weft {

std::vector<int32_t> IdsIn(const std::string& folder) {
  std::vector<int32_t> ids;
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return ids;
  while (const dirent* entry = readdir(dir)) {
    int32_t id = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, id).ptr == end && id > 0) ids.push_back(id);
  }
  closedir(dir);
  std::ranges::sort(ids);
  return ids;
}

}  // namespace weft
