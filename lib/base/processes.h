// SPDX-License-Identifier: Apache-2.0
// Processes and threads of this pid namespace, as /proc lists them. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_BASE_PROCESSES_H_
#define WEFT_LIB_BASE_PROCESSES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// Returns the ids that are names in a folder of /proc, sorted; none if it cannot be read.
std::vector<int32_t> IdsIn(const std::string& folder);
inline std::vector<int32_t> AllProcesses() { return IdsIn("/proc"); }

}  // namespace weft

#endif  // WEFT_LIB_BASE_PROCESSES_H_
