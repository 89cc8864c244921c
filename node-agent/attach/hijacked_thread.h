// SPDX-License-Identifier: Apache-2.0
// One thread of another process, made to run system calls and functions for the agent, and then
// let go on as before. All other threads run meanwhile.
//
// Invariant: from the first change of the thread's registers until they are its own again, an
// emergency frame lies below its stack, and whatever runs returns into that frame. So a SIGKILL of
// this process at any point lets the thread finish what it runs and then go on as before: the
// kernel detaches it. Its signals are blocked meanwhile; the frame unblocks them.
//
// Used by the thread that made it (ptrace belongs to threads), which ends soon after.
#ifndef WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_
#define WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/attach/emergency_frame.h"
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

class HijackedThread {
 public:
  // kPermission: ptrace is refused. kTimeout: the thread does not stop (it waits for a vfork child,
  // say). kNotFound: it ended. kUnsupported: it cannot be used, for the reason that the message
  // gives. `is_filtered`: it has a seccomp filter, which must not see the calls.
  static Result<HijackedThread> Take(const hooks::ProcessMemory& memory, int32_t tid,
                                     const Gates& gates, bool is_filtered);
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

 private:
  enum class Stop : uint8_t { kOther, kCall };

  HijackedThread(const hooks::ProcessMemory& memory, int32_t tid) : memory_(&memory), tid_(tid) {}
  Status Seize(bool is_filtered);
  Status WaitUntilStopped();
  Status ReadState();
  void LeaveRseq();
  Status SetUp(const Gates& gates);
  Result<int> Wait(int64_t patience_ms);
  Status Go(const user_regs_struct& registers);
  // Until the thread begins or ends a system call. Returns its registers.
  Result<user_regs_struct> NextCall();
  Status Restore();

  const hooks::ProcessMemory* memory_;
  int32_t tid_;
  bool is_seized_ = false;
  bool is_changed_ = false;
  bool is_stopped_again_ = false;  // a SIGSTOP came meanwhile
  Gates gates_;
  ThreadState state_;  // with which the thread goes on
  EmergencyFrame frame_;
  std::optional<int64_t> rseq_offset_;
};

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_HIJACKED_THREAD_H_
