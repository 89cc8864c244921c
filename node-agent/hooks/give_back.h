// SPDX-License-Identifier: Apache-2.0
// The end of a recording of a program into which an agent loaded libweft.so (lib/abi/hooks.h, A5):
// functions of its C library have their own bytes again, and the library is silent until the next
// recording wakes it (docs/adr/0069).
//
// Each of these may be called again at any time, also after an agent died inside it. Thread-safety:
// one call for a process at a time.
#ifndef WEFT_NODE_AGENT_HOOKS_GIVE_BACK_H_
#define WEFT_NODE_AGENT_HOOKS_GIVE_BACK_H_

#include <cstdint>

#include "lib/base/result.h"

namespace weft::hooks {

// Gives the functions back that ReplaceFunctions replaced, and does nothing in other processes. No
// hook of the process may be on. Calls of hooked functions that still run return to their callers
// from then on. What unwinders ask stays replaced if an unwinder may just be in the library's code.
// kNotFound: it has no library. kPermission, kTimeout: the process cannot be stopped, a thread
// stays in the library, or another thread of the agent uses the process; all functions are as
// before.
Status GiveBackFunctions(int32_t pid);

// Is the library of this process silent, since its functions were given back? kTimeout: another
// thread of the agent uses the process.
Result<bool> IsDetached(int32_t pid);

// Lets the library record again. The caller has seen to the filters that hold now: `has_filter`
// says that there is one. Call ReplaceFunctions before, so that the library sees later ones.
// kTimeout: nothing is replaced, since the functions were given back after that; it stays silent.
Status WakeLibrary(int32_t pid, bool has_filter);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_GIVE_BACK_H_
