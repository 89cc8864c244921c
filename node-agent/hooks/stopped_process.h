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

#include <sys/prctl.h>
#include <sys/user.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "lib/base/background.h"
#include "lib/base/result.h"

namespace weft::hooks {

// Runs `call` in a thread that ends with it. While it waits for a stop it sleeps for as short as it
// asks for: by default the kernel adds 50 microseconds (timer slack).
template <typename Call>
void InThreadOfItsOwn(const Call& call) {
  ThreadWithoutSignals([&call] {
    (void)prctl(PR_SET_TIMERSLACK, 1);
    call();
  }).join();
}

// Returns the thread ids of a process.
std::vector<int32_t> ThreadsOf(int32_t pid);
// Does a signal that is not blocked wait for the thread? True also if that cannot be seen.
bool IsSignalled(int32_t pid, int32_t tid);

// Addresses from `begin` on, below `end`.
struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
  [[nodiscard]] bool Contains(uint64_t address) const { return address - begin < end - begin; }
};

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
  // Does a thread, or code that a signal handler interrupted, execute code of one of these spans?
  // True also if that cannot be seen.
  [[nodiscard]] bool Executes(const std::vector<Span>& code) const;
  // Does a thread execute `code`, which one of `callers` may have called? True also if that cannot
  // be seen. Only small frames of `code` are searched.
  [[nodiscard]] bool IsCalledFrom(const std::vector<Span>& callers,
                                  const std::vector<Span>& code) const;
  // Is there a word in a register or on a stack for which `wanted` returns true? `at`: its address;
  // 0: it is in a register. Stacks are searched as for IsInside, and also those that a signal
  // handler on a stack of its own interrupted.
  [[nodiscard]] bool Holds(const std::function<bool(uint64_t at, uint64_t word)>& wanted) const;

 private:
  struct Thread {
    int signal = 0;  // that is delivered when it goes on
    // With which it goes on; rip is 0: not known.
    user_regs_struct registers{};
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
