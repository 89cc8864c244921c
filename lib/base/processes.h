// SPDX-License-Identifier: Apache-2.0
// The processes of this pid namespace. Thread-safety: pure functions.
#ifndef WEFT_LIB_BASE_PROCESSES_H_
#define WEFT_LIB_BASE_PROCESSES_H_

#include <cstdint>
#include <vector>

namespace weft {

// Sorted.
std::vector<int32_t> AllProcesses();

}  // namespace weft

#endif  // WEFT_LIB_BASE_PROCESSES_H_
