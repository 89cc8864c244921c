// SPDX-License-Identifier: Apache-2.0
// Opens files by their path as a container sees it. Function without state.
#ifndef WEFT_LIB_BASE_OPEN_IN_ROOT_H_
#define WEFT_LIB_BASE_OPEN_IN_ROOT_H_

#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft {

// Opens a regular file for reading. `root` is the container's root ("/", or /proc/PID/root):
// whatever symbolic links there are in it, the path does not lead out of it, and no device or FIFO
// is opened. kInvalid: there is no such file, or it is not a regular one.
Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path);

}  // namespace weft

#endif  // WEFT_LIB_BASE_OPEN_IN_ROOT_H_
