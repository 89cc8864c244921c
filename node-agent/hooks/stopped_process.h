// SPDX-License-Identifier: Apache-2.0
// All threads of a process, stopped by ptrace (SEIZE, INTERRUPT) as long as this object lives. The
// registers of no thread are changed, but for one case (below), so that the death of this process
// at any point lets the threads go on: the kernel detaches them.
//
// A stop alone makes some system calls return EINTR, which restart after no stop (epoll_wait,
// semop, ...). A thread in which no signal waits is set back to the call, in one step.
//
// Used by the thread that made it, which ends soon after (InThreadOfItsOwn): ptrace belongs to
// threads, and the end of a thread detaches also what did not stop in time.
#ifndef WEFT_NODE_AGENT_HOOKS_STOPPED_PROCESS_H_
#define WEFT_NODE_AGENT_HOOKS_STOPPED_PROCESS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "lib/base/background.h"
#include "lib/base/result.h"

namespace weft::hooks {

// Runs `call` in a thread that ends with it.
template <typename Call>
void InThreadOfItsOwn(const Call& call) {
  ThreadWithoutSignals(call).join();
}

// Returns the thread ids of a process.
std::vector<int32_t> ThreadsOf(int32_t pid);
// Does a signal that is not blocked wait for the thread? True also if that cannot be seen.
bool IsSignalled(int32_t pid, int32_t tid);

class StoppedProcess {
 public:
  // kPermission: another process traces it, or the kernel lets none do it; kTimeout: a thread does
  // not stop (it waits for a vfork child, say), or another thread of this process traces it.
  static Result<StoppedProcess> Stop(int32_t pid);
  StoppedProcess(StoppedProcess&& other) noexcept
      : pid_(other.pid_), threads_(std::move(other.threads_)) {
    other.threads_.clear();
  }
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  // Lets the threads go on.
  ~StoppedProcess();

  // Is a thread, or code that a signal handler interrupted, inside one of these ranges of
  // WEFT_HOOK_JUMP_BYTES, behind its first byte? True also if that cannot be seen. A place that a
  // signal interrupted is searched on the stack in use, in kStackBytes. `entries`: sorted.
  [[nodiscard]] bool IsInside(const std::vector<uint64_t>& entries) const;

 private:
  struct Thread {
    int signal = 0;  // that is delivered when it goes on
    // Where it goes on, and its stack; 0: not known.
    uint64_t instruction = 0;
    uint64_t stack = 0;
  };

  explicit StoppedProcess(int32_t pid) : pid_(pid) {}
  Status StopNew();
  Status Wait(int32_t tid);
  void Look(int32_t tid, Thread& thread) const;

  int32_t pid_;
  std::map<int32_t, Thread> threads_;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_STOPPED_PROCESS_H_
