// SPDX-License-Identifier: Apache-2.0
// Counts the events of a ring set that no consumer will read, because it arrived when its channel
// had ended, or because its consumer keeps failing. The counts keep property P3's equality.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RING_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RING_H_

#include <array>
#include <cstdint>

#include "lib/abi/ring.h"
#include "lib/base/result.h"
#include "lib/base/token_bucket.h"
#include "lib/base/unique_fd.h"

namespace weft::agent {

struct RingTotals {
  uint64_t channel_id = 0;  // as the ring claims
  uint64_t instance = 0;
  bool is_final = true;  // false: the writer of the atomic slot may have added events
  uint64_t recorded = 0;
  std::array<uint64_t, WEFT_DISCARD_REASONS> discarded{};
};

// Returns what the header claims; only its form is checked. kInvalid, kCorrupt: it is no ring set.
Result<RingTotals> IdentifyRing(const UniqueFd& fd);

// Closes all slots, so that nothing is added, then counts. The memory is foreign: slots that
// contradict themselves count as empty. It waits for an owner of the atomic slot's lock, up to
// 0.2 s, as often as `waits` allows: any process can make up an owner.
Result<RingTotals> CloseAndCount(UniqueFd fd, TokenBucket& waits);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_LATE_RING_H_
