// SPDX-License-Identifier: Apache-2.0
// See cgroup.h. Source of the format: cgroups(7).
#include "lib/base/cgroup.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace weft {
namespace {

bool HasWord(const std::string& options, const std::string& word) {
  std::istringstream in(options);
  for (std::string option; std::getline(in, option, ',');)
    if (option == word) return true;
  return false;
}

// A line of mountinfo: ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS... - TYPE SOURCE OPTIONS.
struct Mount {
  std::string root, point, type, options;
};

std::optional<Mount> ParseMount(const std::string& line) {
  const size_t end = line.find(" - ");
  if (end == std::string::npos) return std::nullopt;
  std::istringstream words(line), rest(line.substr(end + 3));
  std::string id, parent, device, source;
  Mount mount;
  if (!(words >> id >> parent >> device >> mount.root >> mount.point)) return std::nullopt;
  if (!(rest >> mount.type >> source >> mount.options)) return std::nullopt;
  return mount;
}

// The path in a line "NUMBER:CONTROLLERS:PATH" of a process's file `cgroup`, without "/" at its
// end; of version 2 there are no controllers.
std::optional<std::string> PathOf(const std::string& file, bool is_version_1) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_version_1 ? !HasWord(controllers, "memory") : !controllers.empty()) continue;
    std::string path = line.substr(second + 1);
    while (path.ends_with('/')) path.pop_back();
    return path;
  }
  return std::nullopt;
}

std::optional<MemoryCgroup> FindIn(const std::string& proc, bool is_version_1) {
  const auto path = PathOf(proc + "/cgroup", is_version_1);
  if (!path) return std::nullopt;
  std::ifstream in(proc + "/mountinfo");
  for (std::string line; std::getline(in, line);) {
    auto mount = ParseMount(line);
    if (!mount || mount->type != (is_version_1 ? "cgroup" : "cgroup2")) continue;
    if (is_version_1 && !HasWord(mount->options, "memory")) continue;
    const std::string root = mount->root == "/" ? "" : mount->root;
    if (*path != root && !path->starts_with(root + "/")) continue;
    return MemoryCgroup{is_version_1, mount->point, mount->point + path->substr(root.size())};
  }
  return std::nullopt;
}

}  // namespace

void RemoveCgroup(const std::string& folder) {
  const std::string parent = folder.substr(0, folder.rfind('/'));
  std::ifstream in(folder + "/cgroup.procs");
  for (std::string pid; std::getline(in, pid);) {
    std::ofstream out(parent + "/cgroup.procs");
    out << pid << '\n';
  }
  rmdir(folder.c_str());
}

std::optional<MemoryCgroup> FindMemoryCgroup(const std::string& proc) {
  const auto version_1 = FindIn(proc, true);
  return version_1 ? version_1 : FindIn(proc, false);
}

}  // namespace weft
