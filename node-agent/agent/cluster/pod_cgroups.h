// SPDX-License-Identifier: Apache-2.0
// Finds the kubelet's pods in the hierarchy of cgroup v2, since weft.ko identifies cgroups by
// number.
//
// The kubelet's folder "kubepods" may stand anywhere near the top. Below a pod's folder only the
// containers' folders are examined, since a container may be able to make folders of any name
// there. Used by the agent's loop. Source of the names: the kubelet's cgroup drivers (cgroupfs,
// systemd).
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_POD_CGROUPS_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_POD_CGROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace weft::agent {

class PodCgroups {
 public:
  // Finds those of this machine, from within a container or not. kUnsupported: pods are not in
  // cgroup v2 here; kPermission: they are, and this process sees only a part of it.
  static Result<PodCgroups> Find();
  // Finds those in the hierarchy that limits memory, of version 1 or 2. If this process cannot see
  // it, the result finds no pod.
  static PodCgroups OfMemory();
  // `mount`: the folder of the hierarchy's root.
  explicit PodCgroups(std::string mount) : mount_(std::move(mount)) {}

  // The pod's cgroup; none: the kubelet has not made it.
  std::optional<uint64_t> OfPod(const std::string& uid);
  // Those of its containers with these ids, as far as they are there.
  std::set<uint64_t> OfContainers(const std::string& uid, const std::set<std::string>& ids);
  // The smallest memory limit of the pod's cgroup and of those above it; 0: none is known.
  uint64_t MemoryLimitOfPod(const std::string& uid);
  // Their folders, by id.
  std::map<std::string, std::string> FoldersOf(const std::string& uid,
                                               const std::set<std::string>& ids);

 private:
  void FindRoots();
  std::string FolderOf(const std::string& uid);

  std::string mount_;
  std::vector<std::string> roots_;  // folders "kubepods"
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_POD_CGROUPS_H_
