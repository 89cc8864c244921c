// SPDX-License-Identifier: Apache-2.0
// ^C and SIGTERM: the first one asks the command to end in order, the second one ends the process
// at once. Thread-safety: all functions.
#ifndef WEFT_CLI_KUBECTL_INTERRUPTS_H_
#define WEFT_CLI_KUBECTL_INTERRUPTS_H_

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/exit_status.h"
#include "lib/base/stop_signals.h"

namespace weft::kubectl {

class Interrupts {
 public:
  // Made before any other thread, which inherits the mask. There is one in a process.
  Interrupts() {
    BlockStopSignals();
    // The thread waits for signals as long as the process lives.
    std::thread([this] {
      WaitForStopSignal();
      {
        const std::lock_guard lock(mutex_);
        came_ = true;
      }
      changed_.notify_all();
      WaitForStopSignal();
      _exit(cli::kExitSignalBase + SIGINT);
    }).detach();
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool came() {
    const std::lock_guard lock(mutex_);
    return came_;
  }

  // Waits for this time, or until the first signal. Returns came().
  bool Sleep(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return came_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_INTERRUPTS_H_
