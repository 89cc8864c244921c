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
#include "lib/base/unique_fd.h"

namespace weft::agent {

// The device. `folders`, each with RELEASE/weft.ko, are looked at first, then this installation's
// own (share/weft/kmod/modules), then, where this program stands in a repository's build folder,
// what ./dev kmod build left there, then the distribution's. The error says why it cannot be had,
// for people, with a reason of driver.h where it could not be loaded.
Result<UniqueFd> OpenOrLoadModule(std::vector<std::string> folders);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LOCAL_LOCAL_MODULE_H_
