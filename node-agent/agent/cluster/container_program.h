// SPDX-License-Identifier: Apache-2.0
// Tells a container's own processes from those of the container runtime, which enter a container's
// cgroup to start a program there (`runc init`, also for kubectl exec and probes) or to watch it
// (conmon). What they run is no file of the container: it is on a mount of the node, or on one of
// no mount namespace (a memfd, a detached mount). A process's mount namespace and root do not tell,
// since such a process takes those of the container before it executes the container's program.
//
// Only the kernel is asked, so no tenant's file system (FUSE) can hold the caller up.
// Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_CONTAINER_PROGRAM_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_CONTAINER_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/result.h"

namespace weft::agent {

// Returns a number for the mount namespace of a process; 0: it has ended.
uint64_t MountNamespaceOf(int32_t pid);

// Returns processes of the same container.
using Neighbours = std::function<std::vector<int32_t>()>;

// Is the program of a process on a mount of its container? `node_mounts`: the node's mount
// namespace. `neighbours`: who may see mounts that the process does not see (chroot). kNotFound: it
// is in the node's mount namespace, or has ended; kUnsupported: it runs something else.
Status CheckProgram(int32_t pid, uint64_t node_mounts, const Neighbours& neighbours);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_CONTAINER_PROGRAM_H_
