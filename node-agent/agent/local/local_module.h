// SPDX-License-Identifier: Apache-2.0
// weft.ko in local mode: as it is, or, for root, loaded by the first session that needs the
// kernel.
//
// Called by the agent's one thread; to load the module takes a second. A loaded module that is
// usable is never replaced here: other processes may be about to use it. Nothing is built, and
// nothing is unloaded at the end.
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
// tells why there is no module, with a reason of driver.h if it could not be loaded.
Result<kernel::Support> ProbeOrLoadModule(std::vector<std::string> folders);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODULE_H_
