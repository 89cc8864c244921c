// SPDX-License-Identifier: Apache-2.0
// Makes functions of a running program's C library jump to those of a libweft.so that was loaded
// into it (lib/abi/hooks.h, A4): unwinders then find the library, and it sees filters and children
// that the program makes (docs/adr/0065).
//
// It may be called again at any time, also after an agent died inside it. What cannot be replaced
// with certainty stays as it is. Thread-safety: one call for a process at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_REPLACE_FUNCTIONS_H_
#define WEFT_NODE_AGENT_HOOKS_REPLACE_FUNCTIONS_H_

#include <chrono>
#include <cstdint>

#include "lib/base/result.h"

namespace weft::hooks {

// Does nothing in a process in which ld.so loaded the library, in which it was done, or that runs
// on its parent's memory (vfork). kNotFound: it has no library. kPermission, kTimeout: the process
// cannot be stopped, or is in use by another thread of the agent, and has the functions that it had
// before: call it again later. Adds to `stopped` how long all threads stood still.
Status ReplaceFunctions(int32_t pid, std::chrono::nanoseconds& stopped);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_REPLACE_FUNCTIONS_H_
