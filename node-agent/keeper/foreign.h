// SPDX-License-Identifier: Apache-2.0
// Closes descriptors that a traced program sent and weft does not want. Any thread.
#ifndef WEFT_NODE_AGENT_KEEPER_FOREIGN_H_
#define WEFT_NODE_AGENT_KEEPER_FOREIGN_H_

#include <vector>

#include "lib/base/unique_fd.h"

namespace weft::keeper {

// Closes them without waiting for what their last close may wait for: a socket that lingers
// (SO_LINGER) waits for its peer, for days if the program likes, but not where a thread exits. So
// such a thread has the last reference. Known limit: files whose every close asks a process, of
// FUSE above all; a pod has no /dev/fuse unless it was given one.
void CloseForeign(std::vector<UniqueFd> fds);

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_FOREIGN_H_
