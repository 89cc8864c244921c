// SPDX-License-Identifier: Apache-2.0
// One thread of another process, made to run system calls and functions for the agent, and then
// let go on as before. All other threads run meanwhile.
//
// Invariant: from the first change of the thread's registers until they are its own again, an
// emergency frame lies below its stack, and whatever runs returns into that frame. So a SIGKILL of
// this process at any point lets the thread finish what it runs and then go on as before: the
// kernel detaches it. Its signals are blocked meanwhile; the frame unblocks them.
//
// The process's other threads can make this one run anything, at any moment. One that executes
// another program is let go at once: its registers may belong to a program with more rights.
//
// Used by the thread that made it (ptrace belongs to threads), which ends soon after.
#ifndef WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_
#define WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/attach/emergency_frame.h"
#include "node-agent/attach/limits.h"
#include "node-agent/attach/target_check.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::attach {

// Code that runs a function and then returns into the emergency frame.
struct Trampoline {
  uint64_t address = 0;
  uint64_t end = 0;  // the instruction behind its system call getpid, which says that it is done
};
// The bytes of a trampoline, for any address.
std::vector<uint8_t> TrampolineCode();
Trampoline TrampolineAt(uint64_t address);

// Searches a process's code for what a thread needs to call the kernel, and to come back.
// kUnsupported: it is not there.
Result<Gates> SearchGates(const hooks::ProcessMemory& memory,
                          const std::vector<hooks::MappedRange>& ranges);

class HijackedThread {
 public:
  // kPermission: ptrace is refused. kTimeout: the thread does not stop (it waits for a vfork child,
  // say). kNotFound: it ended. kUnsupported: it cannot be used, for the reason that the message
  // gives. A seccomp filter that it has does not see the calls.
  static Result<HijackedThread> Take(const hooks::ProcessMemory& memory, const Target& target,
                                     int32_t tid, const Gates& gates);
  HijackedThread(HijackedThread&& other) noexcept;
  HijackedThread& operator=(HijackedThread&&) = delete;
  // Releases the thread, if that was not done.
  ~HijackedThread();

  // Makes a system call. Returns its result, or what it failed with as kIo.
  Result<uint64_t> Call(const char* name, long number, const std::array<uint64_t, 6>& arguments);
  // Runs a function on another stack.
  Status Run(const Trampoline& trampoline, uint64_t function, uint64_t stack_top,
             const std::array<uint64_t, 3>& arguments);
  // Lets the thread go on as before.
  Status Release();

  // Address of kFrameScratchBytes of memory.
  [[nodiscard]] uint64_t scratch() const { return frame_.scratch; }
  // Where the thread's restartable sequences are registered, from its thread pointer.
  [[nodiscard]] std::optional<int64_t> rseq_offset() const { return rseq_offset_; }
  [[nodiscard]] int32_t tid() const { return tid_; }

 private:
  enum class Stop : uint8_t { kOther, kCall };

  using Clock = std::chrono::steady_clock;

  HijackedThread(const hooks::ProcessMemory& memory, int32_t tid) : memory_(&memory), tid_(tid) {}
  Status Seize();
  Status WaitUntilStopped();
  Status LeaveFilters();
  Status ReadState();
  void LeaveRseq();
  Status SetUp(const Gates& gates, uint64_t stack);
  Result<int> Wait(std::chrono::milliseconds patience);
  // Lets the thread run on until its next stop, which Wait sees.
  Status Continue(const char* what, long request, int signal);
  Status Go(const user_regs_struct& registers);
  // Until the thread begins or ends a system call. Returns its registers.
  Result<user_regs_struct> NextCall();
  Status Restore();

  const hooks::ProcessMemory* memory_;
  int32_t tid_;
  Clock::time_point end_ = Clock::now() + kLoadPatience;  // of all waiting
  bool is_seized_ = false;
  bool is_changed_ = false;
  bool is_running_ = true;
  bool is_stopped_again_ = false;  // a SIGSTOP came meanwhile
  Gates gates_;
  ThreadState state_;  // with which the thread goes on
  EmergencyFrame frame_;
  std::optional<int64_t> rseq_offset_;
};

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_
