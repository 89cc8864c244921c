// SPDX-License-Identifier: Apache-2.0
// See pod_cgroups.h.
#include "node-agent/agent/cluster/pod_cgroups.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "node-agent/agent/base/cgroup_mount.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/base/memory_limit.h"
#include "node-agent/agent/cluster/cgroup.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

// With cgroup v1 beside it, the controllers that a kubelet needs are there.
bool HasControllers(const std::string& mount) {
  std::ifstream in(mount + "/cgroup.controllers");
  for (std::string word; in >> word;)
    if (word == "memory" || word == "pids") return true;
  return false;
}

// Its number is the same on every machine (the kernel's include/linux/proc_ns.h).
bool IsInFirstNamespace() {
  constexpr ino_t kFirst = 0xEFFFFFFB;
  struct stat st{};
  return stat("/proc/self/ns/cgroup", &st) != 0 || st.st_ino == kFirst;
}

bool IsKubepods(const std::string& name) {
  return name == "kubepods" || name == "kubepods.slice" || name.ends_with("-kubepods.slice");
}

std::optional<uint64_t> IdOf(const std::string& folder) {
  struct stat st{};
  if (stat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return std::nullopt;
  return st.st_ino;
}

// The names that a pod's folder may have below ".../kubepods" or ".../PREFIX-kubepods.slice".
std::vector<std::string> Candidates(const std::string& root, const std::string& uid) {
  constexpr const char* kClasses[] = {"burstable", "besteffort"};
  std::string name = root.substr(root.rfind('/') + 1);
  if (!name.ends_with(".slice")) {
    std::vector<std::string> folders{root + "/pod" + uid};
    for (const char* of_class : kClasses)
      folders.push_back(std::string(root).append("/").append(of_class).append("/pod").append(uid));
    return folders;
  }
  name.resize(name.rfind(".slice"));
  std::string sliced = uid;
  std::ranges::replace(sliced, '-', '_');
  std::vector<std::string> folders{root + "/" + name + "-pod" + sliced + ".slice"};
  for (const char* of_class : kClasses) {
    const std::string slice = std::string(name).append("-").append(of_class);
    std::string& folder = folders.emplace_back(root);
    folder.append("/").append(slice).append(".slice/").append(slice);
    folder.append("-pod").append(sliced).append(".slice");
  }
  return folders;
}

}  // namespace

Result<PodCgroups> PodCgroups::Find() {
  auto mount = CgroupMount("/proc/self/mountinfo");
  if (!mount) {
    mount = CgroupMount("/proc/1/mountinfo");
    if (mount) *mount = "/proc/1/root" + *mount;
  }
  if (!mount || !HasControllers(*mount)) {
    return Fail(ErrorCode::kUnsupported,
                "this node's pods are in control groups of version 1; kernel events are told "
                "apart by those of version 2");
  }
  if (!IsInFirstNamespace()) {
    return Fail(ErrorCode::kPermission,
                "the agent has a control group namespace of its own, which hides those of pods: "
                "its container is not privileged");
  }
  return PodCgroups(*mount);
}

PodCgroups PodCgroups::OfMemory() {
  if (const auto mount = MemoryMount("/proc/1/mountinfo")) {
    const std::string seen_from_here = "/proc/1/root" + *mount;
    if (access(seen_from_here.c_str(), X_OK) == 0) return PodCgroups(seen_from_here);
  }
  return PodCgroups(MemoryMount("/proc/self/mountinfo").value_or(""));
}

uint64_t PodCgroups::MemoryLimitOfPod(const std::string& uid) {
  const std::string folder = FolderOf(uid);
  return folder.empty() ? 0 : MemoryLimitOf(mount_, folder);
}

// Breadth first, so that of two the upper one counts.
void PodCgroups::FindRoots() {
  roots_.clear();
  std::vector<std::string> level{mount_};
  size_t looked_at = 0;
  for (int depth = 0; depth < kMaxKubepodsDepth && roots_.empty(); ++depth) {
    std::vector<std::string> next;
    for (const std::string& folder : level) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (!entry.is_directory(error) || ++looked_at > kMaxCgroupsLookedAt) continue;
        const std::string name = entry.path().filename().string();
        (IsKubepods(name) ? roots_ : next).push_back(entry.path().string());
      }
    }
    level = std::move(next);
  }
}

std::string PodCgroups::FolderOf(const std::string& uid) {
  // It becomes a part of a path.
  if (uid.empty() || uid.find('/') != std::string::npos) return "";
  const auto look = [&]() -> std::string {
    for (const std::string& root : roots_)
      for (const std::string& folder : Candidates(root, uid))
        if (IdOf(folder)) return folder;
    return "";
  };
  std::string found = look();
  if (!found.empty()) return found;
  FindRoots();
  return look();
}

std::optional<uint64_t> PodCgroups::OfPod(const std::string& uid) {
  const std::string folder = FolderOf(uid);
  return folder.empty() ? std::nullopt : IdOf(folder);
}

std::map<std::string, std::string> PodCgroups::FoldersOf(const std::string& uid,
                                                         const std::set<std::string>& ids) {
  std::map<std::string, std::string> found;
  const std::string folder = FolderOf(uid);
  if (folder.empty()) return found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string id = ContainerIdOf(entry.path().filename().string());
    if (ids.contains(id)) found.emplace(id, entry.path().string());
  }
  return found;
}

std::set<uint64_t> PodCgroups::OfContainers(const std::string& uid,
                                            const std::set<std::string>& ids) {
  std::set<uint64_t> found;
  for (const auto& [container, folder] : FoldersOf(uid, ids))
    if (const auto id = IdOf(folder)) found.insert(*id);
  return found;
}

}  // namespace weft::agent
