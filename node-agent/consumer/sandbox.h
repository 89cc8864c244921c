// SPDX-License-Identifier: Apache-2.0
// Limits what a consumer can do before it reads tenants' bytes. It can still use its descriptors,
// talk over its sockets, get memory and read the time. It cannot open or make files, sockets or
// processes, or look into them. Called once, by the only thread, before the first foreign byte is
// read.
//
// Steps: no_new_privs; all capabilities dropped (the bounding set too, where allowed); a seccomp
// filter that kills the process at any system call that is not in the list of sandbox.cc.
#ifndef WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_
#define WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_

#include "lib/base/result.h"

namespace weft::consumer {

// Enters the sandbox for good. kUnsupported: the kernel has no seccomp filters.
Status EnterSandbox();

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_
