// SPDX-License-Identifier: Apache-2.0
// The end of a cgroup (v2) of ours. Without state.
#ifndef WEFT_LIB_BASE_CGROUP_H_
#define WEFT_LIB_BASE_CGROUP_H_

#include <string>

namespace weft {

// Processes that are still in it go to the one above. Best effort: what is not there is no error.
void RemoveCgroup(const std::string& folder);

}  // namespace weft

#endif  // WEFT_LIB_BASE_CGROUP_H_
