// SPDX-License-Identifier: Apache-2.0
// What lets a thread that runs something for the agent go on as before when the agent dies: the
// frame of a signal below the thread's stack, which the kernel would have made for a handler. The
// thread returns into it whatever it did last (hijacked_thread.h). x86-64.
#ifndef WEFT_NODE_AGENT_ATTACH_EMERGENCY_FRAME_H_
#define WEFT_NODE_AGENT_ATTACH_EMERGENCY_FRAME_H_

#include <sys/user.h>

#include <cstdint>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "node-agent/attach/limits.h"

namespace weft::attach {

// Bytes for the agent's own use, above the frame.
inline constexpr uint64_t kFrameScratchBytes = 64;

struct ThreadState {
  user_regs_struct registers{};
  std::vector<uint8_t> fpu;  // as PTRACE_GETREGSET gives NT_X86_XSTATE
  uint64_t blocked = 0;      // signals
};

struct EmergencyFrame {
  uint64_t address = 0;  // the stack pointer for what runs: a return goes into the frame
  uint64_t scratch = 0;  // address of kFrameScratchBytes
  std::vector<uint8_t> bytes;
};

// Returns the state with which a thread goes on that stopped in a system call: at the call, if the
// kernel would make it again. A timeout begins anew.
ThreadState AtTheCall(ThreadState state);

// Bytes that a frame takes, at most.
inline constexpr uint64_t kMaxFrameBytes = kMaxFpuBytes + kPageBytes;

// Makes a frame below `stack`: the state's stack pointer, below whose red zone it then is, or the
// end of memory that is not used. `restorer`: address of code that makes the system call
// rt_sigreturn. kUnsupported: the registers of the floating point unit have a layout that is not
// known.
Result<EmergencyFrame> MakeEmergencyFrame(const ThreadState& state, uint64_t stack,
                                          uint64_t restorer);

// Where a thread is sent. 0: not found.
struct Gates {
  uint64_t call = 0;      // syscall; ret
  uint64_t restorer = 0;  // mov $15, %eax; syscall
};
inline constexpr uint64_t kMaxGateBytes = 9;
// Completes `gates` from code at `address`.
void FindGates(uint64_t address, Bytes code, Gates& gates);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_EMERGENCY_FRAME_H_
