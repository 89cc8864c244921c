// SPDX-License-Identifier: Apache-2.0
// See program_cgroup.h. Source of the formats: cgroups(7).
#include "node-agent/agent/kernel/program_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "lib/base/unique_fd.h"
#include "node-agent/agent/base/cgroup_mount.h"

namespace weft::agent {
namespace {

// Returns the path in cgroup v2's line of /proc/self/cgroup: "0::/PATH".
std::optional<std::string> OwnPath() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return std::nullopt;
}

}  // namespace

Result<std::string> MakeProgramCgroup(const std::string& name) {
  const auto own = OwnPath();
  const auto mount = CgroupMount("/proc/self/mountinfo");
  if (!own || !mount) {
    return Fail(ErrorCode::kUnsupported,
                "kernel events are recorded by cgroup v2, and it is not mounted here");
  }
  std::string folder = *mount + (*own == "/" ? "" : *own) + "/" + name;
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return FailErrno(folder);
  return folder;
}

Result<uint64_t> CgroupId(const std::string& folder) {
  struct stat st{};
  if (stat(folder.c_str(), &st) != 0) return FailErrno(folder);
  return st.st_ino;
}

}  // namespace weft::agent
