// SPDX-License-Identifier: Apache-2.0
// What the two programs of the agent (local/main.cc, cluster/main.cc) do around it, after they have
// parsed their flags.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_PROCESS_H_
#define WEFT_NODE_AGENT_AGENT_CORE_PROCESS_H_

#include <functional>

#include "lib/base/result.h"
#include "lib/ipc/loop.h"

namespace weft::agent {

// Makes the loop and calls `run` with it, on this thread. Reports an error on standard error, after
// the program's name, also when the process has no connection to a keeper. Returns the exit status.
int RunProcess(const std::function<Status(ipc::Loop&)>& run);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_PROCESS_H_
