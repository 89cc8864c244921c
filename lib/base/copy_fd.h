// SPDX-License-Identifier: Apache-2.0
// Duplicates a descriptor, for a message that takes one. Any thread.
#ifndef WEFT_LIB_BASE_COPY_FD_H_
#define WEFT_LIB_BASE_COPY_FD_H_

#include <fcntl.h>

#include "lib/base/unique_fd.h"

namespace weft {

// Returns a close-on-exec copy with a number above 2; on an error an empty one, and errno.
inline UniqueFd CopyFd(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3)); }
inline UniqueFd CopyFd(const UniqueFd& fd) { return CopyFd(fd.get()); }

}  // namespace weft

#endif  // WEFT_LIB_BASE_COPY_FD_H_
