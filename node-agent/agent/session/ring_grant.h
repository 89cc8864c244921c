// SPDX-License-Identifier: Apache-2.0
// How large the rings of a container may be: all of them together use at most a twentieth of its
// memory limit (docs/adr/0040). Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_RING_GRANT_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_RING_GRANT_H_

#include <cstdint>
#include <string>

namespace weft::agent {

struct RingSize {
  uint32_t subbuf_shift = 0;   // log2 of a sub-buffer's bytes
  uint32_t subbufs_shift = 0;  // log2 of sub-buffers per slot
  bool operator==(const RingSize&) const = default;
};

// Returns the bytes for all rings of a container with this memory limit, in whole pages; 0: there
// is no limit.
uint64_t RingBudget(uint64_t memory_limit);
// Returns the part of the budget that ring sets share among them. The rest is for memory that no
// process asks the pool for: more descriptions than usual, and ring sets that only count.
uint64_t PooledBytes(uint64_t budget);

// Returns the largest size, up to the requested one, with which a process's first ring set takes at
// most half of the pooled bytes. Sub-buffers become smaller first, then fewer. `slots`: those of
// this machine, without the atomic one.
RingSize GrantRings(RingSize asked, uint64_t budget, uint32_t slots);

// "64Ki x 2".
std::string ToString(RingSize size);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_RING_GRANT_H_
