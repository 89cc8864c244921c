// SPDX-License-Identifier: Apache-2.0
// Processes by descriptor. A descriptor keeps its process when the kernel gives the process's
// number to another. Thread-safety: pure functions.
#ifndef WEFT_LIB_BASE_PIDFD_H_
#define WEFT_LIB_BASE_PIDFD_H_

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/unique_fd.h"

namespace weft {

// Returns no descriptor, with errno, if there is no such process.
inline UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

inline bool HasEnded(const UniqueFd& pidfd) {
  pollfd p{pidfd.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_PIDFD_H_
