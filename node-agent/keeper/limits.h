// SPDX-License-Identifier: Apache-2.0
// How keepers of one node deal with each other: names and times.
#ifndef WEFT_NODE_AGENT_KEEPER_LIMITS_H_
#define WEFT_NODE_AGENT_KEEPER_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::keeper {

inline constexpr const char* kHeirsSocket = "keeper.sock";  // in the folder of the node's state
// A DaemonSet has two pods on a node at most; a third may be on its way out.
inline constexpr size_t kMaxHeirs = 8;
// A keeper that waits looks for the lease, and for the keeper that holds it, so often.
inline constexpr std::chrono::milliseconds kLookForLease{20};
// From the request to TakenOver; then the keeper that holds the lease goes on itself.
inline constexpr std::chrono::milliseconds kHandoverTime{10'000};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_LIMITS_H_
