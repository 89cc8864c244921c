// SPDX-License-Identifier: Apache-2.0
// Finds a process's pod and container by the text of its /proc/PID/cgroup. The kernel writes this
// text, but a container that may make cgroups of its own names the lower part of the path. Only the
// first pod of a path counts, which is above every part that a container can name.
//
// Forms, with cgroup v1 (a line per hierarchy) or v2, below any folders:
//     cgroupfs   .../podUID/CONTAINER
//     systemd    .../SLICES-podUID.slice/RUNTIME-CONTAINER.scope     UID with _ for -
// UID: a UUID, or 32 digits (of static pods). CONTAINER: 64 hexadecimal digits.
// Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_CGROUP_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::agent {

struct CgroupPlace {
  std::string pod_uid;
  std::string container_id;  // "": in the pod's cgroup, in no container's
  bool operator==(const CgroupPlace&) const = default;
};

// None: in no pod.
std::optional<CgroupPlace> ParseCgroup(std::string_view text);

// The id in a container's folder, "ID" or "RUNTIME-ID.scope"; "": it is no container's.
std::string ContainerIdOf(std::string_view folder);

// Returns the place of a process now; none where it is in no pod, or gone.
std::optional<CgroupPlace> PlaceOf(int32_t pid);

// Returns the place of the process whose /proc/PID/cgroup this file is.
std::optional<CgroupPlace> PlaceIn(const std::string& file);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_CGROUP_H_
