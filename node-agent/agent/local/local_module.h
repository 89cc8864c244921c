// SPDX-License-Identifier: Apache-2.0
// weft.ko for local mode: as it is, or, for root, loaded by the first session that asks for the
// kernel.
//
// Called by the agent's one thread; loading takes a second where it has to be done. What is loaded
// and can be used is never replaced here: others may be about to use it. Nothing is built, and
// nothing unloaded at the end.
#ifndef WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODULE_H_
#define WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODULE_H_

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/kernel/backend.h"

namespace weft::agent {

// Loads weft.ko if it is not there, and returns what it can do. Looks in `folders` first, each with
// RELEASE/weft.ko, then in this installation (share/weft/kmod/modules), then what ./dev kmod build
// left in a repository that this program stands in, then in the distribution's modules. The error
// tells why it cannot be had, with a reason of driver.h where it could not be loaded.
Result<kernel::Support> ProbeOrLoadModule(std::vector<std::string> folders);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODULE_H_
