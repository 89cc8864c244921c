// SPDX-License-Identifier: Apache-2.0
// Reads the memory limits of control groups, of version 1 or 2. Thread-safety: functions without
// state.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_
#define WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace weft::agent {

// Returns the mount point of the hierarchy that limits memory, from a process's file `mountinfo`:
// that of version 1 if it has the controller, else that of version 2. std::nullopt: only a part of
// the hierarchy is mounted.
std::optional<std::string> MemoryMount(const std::string& mountinfo);

// Returns the smallest limit of `folder` and of the control groups above it, up to the mount point;
// 0: no limit is set.
uint64_t MemoryLimitOf(const std::string& mount, std::string folder);

// Returns the smallest limit that holds for this process; 0: none is set, or it cannot be read.
uint64_t OwnMemoryLimit();

// Returns the smaller one of two limits; 0 is no limit.
uint64_t SmallerLimit(uint64_t a, uint64_t b);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_
