// SPDX-License-Identifier: Apache-2.0
// FIFOs that agent and traced processes share. Functions without state.
#ifndef WEFT_NODE_AGENT_AGENT_BASE_FIFO_H_
#define WEFT_NODE_AGENT_AGENT_BASE_FIFO_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

// Makes the FIFO `path`, or takes the one that is there, which every process may read and write.
// The result is open for reading and writing, so that it never has an end, and not blocking.
// Anything else with that name is removed.
Result<UniqueFd> OpenFifo(const std::string& path);

// Reads up to `bytes` bytes away, as far as they are there.
void TakeOut(const UniqueFd& fifo, uint64_t bytes);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_BASE_FIFO_H_
