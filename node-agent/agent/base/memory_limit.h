// SPDX-License-Identifier: Apache-2.0
// Reads the memory limits of control groups, of version 1 or 2. Thread-safety: functions without
// state.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_
#define WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace weft::agent {

// The mount point of the hierarchy that limits memory, as a process's file `mountinfo` has it: of
// version 1, if the controller is there, else of version 2. None: only a part of it is mounted.
std::optional<std::string> MemoryMount(const std::string& mountinfo);

// The smallest limit of `folder` and of the control groups above it, up to the mount point; 0: no
// limit is set.
uint64_t MemoryLimitOf(const std::string& mount, std::string folder);

// The smallest limit that holds for this process; 0: none is set, or it cannot be read.
uint64_t OwnMemoryLimit();

// The smaller limit of two, of which 0 is none.
uint64_t SmallerLimit(uint64_t a, uint64_t b);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_MEMORY_LIMIT_H_
