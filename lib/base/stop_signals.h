// SPDX-License-Identifier: Apache-2.0
// Waits for SIGTERM (or SIGINT), which ends a multi-threaded daemon. Its first thread calls
// BlockStopSignals before it starts others, which inherit the mask, and then waits.
#ifndef WEFT_LIB_BASE_STOP_SIGNALS_H_
#define WEFT_LIB_BASE_STOP_SIGNALS_H_

#include <pthread.h>

#include <csignal>

namespace weft {

inline sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// A peer that went away is no reason to end either: SIGPIPE is ignored.
inline void BlockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

inline void WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  int got = 0;
  sigwait(&signals, &got);
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_STOP_SIGNALS_H_
