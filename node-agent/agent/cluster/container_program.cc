// SPDX-License-Identifier: Apache-2.0
// See container_program.h.
#include "node-agent/agent/cluster/container_program.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "lib/base/unique_fd.h"

namespace weft::agent {
namespace {

std::string FileOf(int32_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// Returns the id of the mount that the program's file is on; -1: there is none.
int64_t MountOfProgram(int32_t pid) {
  const UniqueFd program(open(FileOf(pid, "exe").c_str(), O_PATH | O_CLOEXEC));
  if (!program) return -1;
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(program.get()));
  int64_t id = -1;
  for (std::string word; in >> word;)
    if (word == "mnt_id:" && in >> id) return id;
  return -1;
}

// Each line begins with the id of a mount that the process sees.
bool Sees(int32_t pid, int64_t mount) {
  std::ifstream in(FileOf(pid, "mountinfo"));
  for (int64_t id = 0; in >> id; in.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (id == mount) return true;
  return false;
}

}  // namespace

uint64_t MountNamespaceOf(int32_t pid) {
  struct stat st{};
  return stat(FileOf(pid, "ns/mnt").c_str(), &st) == 0 ? st.st_ino : 0;
}

Status CheckProgram(int32_t pid, uint64_t node_mounts, const Neighbours& neighbours) {
  const uint64_t mounts = MountNamespaceOf(pid);
  const int64_t mount = MountOfProgram(pid);
  if (mounts == 0 || mount < 0) return Fail(ErrorCode::kNotFound, "it has ended");
  if (mounts == node_mounts) return Fail(ErrorCode::kNotFound, "it is the node's");
  if (Sees(pid, mount)) return {};
  const bool is_seen = std::ranges::any_of(neighbours(), [&](int32_t other) {
    return MountNamespaceOf(other) == mounts && Sees(other, mount);
  });
  if (is_seen) return {};
  return Fail(ErrorCode::kUnsupported,
              "its program is no file of its container, as those of the container runtime are not");
}

}  // namespace weft::agent
