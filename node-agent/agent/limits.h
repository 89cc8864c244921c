// SPDX-License-Identifier: Apache-2.0
// Limits and names of the agent of local mode.
#ifndef WEFT_NODE_AGENT_AGENT_LIMITS_H_
#define WEFT_NODE_AGENT_AGENT_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::agent {

inline constexpr const char* kConsumerName = "local";
inline constexpr const char* kClientsSocket = "session.sock";

// Deadlines (durations of Traces) are looked at so often.
inline constexpr std::chrono::milliseconds kTick{50};
// Processes that start at once; the kernel cuts it to net.core.somaxconn, 4096 unless changed.
inline constexpr int kListenBacklog = 4096;
// Of `weft status` and the like, at once.
inline constexpr size_t kMaxClients = 64;
// The last ones are kept; each is a line for people.
inline constexpr size_t kMaxNotices = 64;
// Text of a CreateSession; lib/api has the limit of one document.
inline constexpr size_t kMaxTracesBytes = size_t{4} << 20;
// Messages to a slow consumer are made when there is room: this bounds the reasons to make one.
inline constexpr size_t kMaxConsumerBacklog = 1 << 20;

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_LIMITS_H_
