// SPDX-License-Identifier: Apache-2.0
// Removes a cgroup (v2) that weft made. Stateless functions.
#ifndef WEFT_LIB_BASE_CGROUP_H_
#define WEFT_LIB_BASE_CGROUP_H_

#include <string>

namespace weft {

// Processes that are still in it go to the one above. Best effort: what is not there is no error.
void RemoveCgroup(const std::string& folder);

}  // namespace weft

#endif  // WEFT_LIB_BASE_CGROUP_H_
