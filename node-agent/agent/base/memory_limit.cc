// SPDX-License-Identifier: Apache-2.0
// See memory_limit.h.
#include "node-agent/agent/base/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "lib/base/cgroup.h"
#include "node-agent/agent/base/cgroup_mount.h"

namespace weft::agent {
namespace {

// Version 1 has no word for "no limit", but the largest number of whole pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// Returns 0 if there is no such file, or no limit in it ("max").
uint64_t ReadLimit(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  in >> text;
  uint64_t limit = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), limit).ec != std::errc{}) return 0;
  return limit < kNoLimit ? limit : 0;
}

bool HasWord(const std::string& options, const std::string& word) {
  std::istringstream in(options);
  for (std::string option; std::getline(in, option, ',');)
    if (option == word) return true;
  return false;
}

// ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS... - TYPE SOURCE OPTIONS (proc(5)).
std::optional<std::string> MountOfVersion1(const std::string& mountinfo) {
  std::ifstream in(mountinfo);
  for (std::string line; std::getline(in, line);) {
    const size_t end = line.find(" - cgroup ");
    if (end == std::string::npos) continue;
    std::istringstream words(line), rest(line.substr(end + 3));
    std::string id, parent, device, root, point, type, source, options;
    if (words >> id >> parent >> device >> root >> point && root == "/" &&
        rest >> type >> source >> options && HasWord(options, "memory"))
      return point;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> MemoryMount(const std::string& mountinfo) {
  const auto mount = MountOfVersion1(mountinfo);
  return mount ? mount : CgroupMount(mountinfo);
}

uint64_t SmallerLimit(uint64_t a, uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

uint64_t MemoryLimitOf(const std::string& mount, std::string folder) {
  uint64_t limit = 0;
  while (folder.starts_with(mount)) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"})
      limit = SmallerLimit(limit, ReadLimit(folder + file));
    if (folder.size() <= mount.size()) break;
    folder.resize(folder.rfind('/'));
  }
  return limit;
}

uint64_t OwnMemoryLimit() {
  const auto own = FindMemoryCgroup();
  return own ? MemoryLimitOf(own->mount, own->folder) : 0;
}

}  // namespace weft::agent
