// SPDX-License-Identifier: Apache-2.0
// Limits what a process can do before it reads tenants' bytes: weft-consumer and weft-types. It can
// still use its descriptors, talk over its sockets, get memory and read the time. It cannot open or
// make files, sockets or processes, or look into them. Each thread calls it once, before the first
// foreign byte is read.
//
// Steps: no_new_privs; all capabilities dropped (the bounding set too, where allowed); a seccomp
// filter that kills the process at any system call that is not in the list of sandbox.cc.
#ifndef WEFT_LIB_SANDBOX_SANDBOX_H_
#define WEFT_LIB_SANDBOX_SANDBOX_H_

#include <span>

#include "lib/base/result.h"

namespace weft {

// Enters the sandbox for good. `refused`: numbers of system calls that fail with EACCES instead of
// ending the process, for libraries that try them in vain. kUnsupported: the kernel has no seccomp
// filters.
Status EnterSandbox(std::span<const int> refused = {});

}  // namespace weft

#endif  // WEFT_LIB_SANDBOX_SANDBOX_H_
