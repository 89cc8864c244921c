// SPDX-License-Identifier: Apache-2.0
// What a consumer may still do once it reads tenants' bytes: use the descriptors it has, talk over
// its sockets, get memory and the time. No file, socket or process can be opened, made or looked
// into. Called once, by the only thread, before the first foreign byte is read.
//
// Steps: no_new_privs; all capabilities dropped (bounding set too, where allowed); a seccomp filter
// that kills the process at any system call that is not in the list of sandbox.cc.
#ifndef WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_
#define WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_

#include "lib/base/result.h"

namespace weft::consumer {

// There is no way back. kUnsupported: the kernel has no seccomp filters.
Status EnterSandbox();

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_SANDBOX_H_
