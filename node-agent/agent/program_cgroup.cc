// SPDX-License-Identifier: Apache-2.0
// See program_cgroup.h. Source of the formats: cgroups(7), proc(5) mountinfo.
#include "node-agent/agent/program_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "lib/base/unique_fd.h"

namespace weft::agent {
namespace {

// The line of /proc/self/cgroup that cgroup v2 has: "0::/PATH".
std::optional<std::string> OwnPath() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return std::nullopt;
}

// ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS... - TYPE SOURCE OPTIONS
std::optional<std::string> MountPoint() {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    if (words >> id >> parent >> device >> root >> point && root == "/") return point;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> MakeProgramCgroup(const std::string& name) {
  const auto own = OwnPath();
  const auto mount = MountPoint();
  if (!own || !mount) {
    return Fail(ErrorCode::kUnsupported,
                "kernel events are recorded by cgroup v2, and it is not mounted here");
  }
  std::string folder = *mount + (*own == "/" ? "" : *own) + "/" + name;
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return FailErrno(folder);
  return folder;
}

void RemoveProgramCgroup(const std::string& folder) {
  const std::string parent = folder.substr(0, folder.rfind('/'));
  std::ifstream in(folder + "/cgroup.procs");
  for (std::string pid; std::getline(in, pid);) {
    std::ofstream out(parent + "/cgroup.procs");
    out << pid << '\n';
  }
  rmdir(folder.c_str());
}

Result<uint64_t> CgroupId(const std::string& folder) {
  struct stat st{};
  if (stat(folder.c_str(), &st) != 0) return FailErrno(folder);
  return st.st_ino;
}

}  // namespace weft::agent
