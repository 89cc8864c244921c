// SPDX-License-Identifier: Apache-2.0
// Where the emergency frame of a thread of a Go program may lie (docs/adr/0066): below the stack
// pointer of a goroutine there may be no room at all.
#ifndef WEFT_NODE_AGENT_ATTACH_GO_STACK_H_
#define WEFT_NODE_AGENT_ATTACH_GO_STACK_H_

#include <sys/user.h>

#include <cstdint>

#include "lib/base/result.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::attach {

// Do its threads have the thread pointers of a libc? Otherwise they have only Go's, and what a libc
// knows of the first thread (restartable sequences) says nothing of the others.
bool HasLibcThreads(const hooks::ProcessMemory& memory, const user_regs_struct& registers);

// Returns the address below which a frame may lie. The thread is stopped. kUnsupported: this thread
// has no room for it now.
Result<uint64_t> StackForFrameOfGo(const hooks::ProcessMemory& memory,
                                   const user_regs_struct& registers);

}  // namespace weft::attach

#endif  // WEFT_NODE_AGENT_ATTACH_GO_STACK_H_
