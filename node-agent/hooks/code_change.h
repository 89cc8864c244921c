// SPDX-License-Identifier: Apache-2.0
// Changes first bytes of functions of one process, with all of its threads stopped: the one place
// that changes code of a process. Thread-safety: one call for a process at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_CODE_CHANGE_H_
#define WEFT_NODE_AGENT_HOOKS_CODE_CHANGE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/base/result.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::hooks {

// Bytes of a function that are to change.
struct Change {
  uint64_t address = 0;
  uint8_t before[WEFT_HOOK_JUMP_BYTES];
  uint8_t after[WEFT_HOOK_JUMP_BYTES];
  bool puts_jump = false;
};

Change PutJump(const weft_hook& hook);
Change TakeOff(const weft_hook& hook);

class StoppedProcess;
// Does what is to be done before the changes, while all threads are stopped. False: this is not the
// moment, and all is to be tried again.
using BeforeChanges = std::function<Result<bool>(const StoppedProcess& process)>;

// Makes changes; one whose bytes are not those of before is left out. Adds to `stopped` how long
// all threads stood still. kPermission, kTimeout: the process cannot be stopped.
Status ChangeCode(const std::vector<Change>& changes, const ProcessMemory& memory,
                  std::chrono::nanoseconds& stopped, const BeforeChanges& before = {});

// Does the process have a shadow stack, which holds its return addresses once more?
bool HasShadowStack(int32_t pid);
// Do two processes have one memory, as a vfork child and its parent do? kcmp(2). False also where
// the kernel does not tell.
bool ShareMemory(int32_t a, int32_t b);
// Does a process run on its parent's memory?
bool IsOnParentsMemory(int32_t pid);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_CODE_CHANGE_H_
