// SPDX-License-Identifier: Apache-2.0
// Signals as a descriptor to poll. For a process with one thread, or before it starts others, which
// inherit the mask. A function without state.
#ifndef WEFT_LIB_BASE_SIGNAL_FD_H_
#define WEFT_LIB_BASE_SIGNAL_FD_H_

#include <sys/signalfd.h>

#include <csignal>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft {

// Blocks the signals. They are read from the descriptor, which does not block.
inline Result<UniqueFd> HoldSignals(const sigset_t& signals) {
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return FailErrno("sigprocmask");
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return FailErrno("signalfd");
  return fd;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_SIGNAL_FD_H_
