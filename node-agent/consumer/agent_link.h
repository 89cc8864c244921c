// SPDX-License-Identifier: Apache-2.0
// The consumer's two connections: to the keeper, which it keeps for life, and to the agent, which
// is replaced when either side was started again. Sends heartbeats, also while the consumer waits
// for a file. Used by one thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_AGENT_LINK_H_
#define WEFT_NODE_AGENT_CONSUMER_AGENT_LINK_H_

#include <poll.h>

#include <deque>
#include <optional>
#include <vector>

#include "lib/ipc/connection.h"

namespace weft::consumer {

class AgentLink {
 public:
  explicit AgentLink(UniqueFd keeper) : keeper_(std::move(keeper)) {}

  // Waits at most so long for something to happen, also to `others`; then next() has what arrived.
  void Wait(uint64_t nanoseconds, std::vector<pollfd> others);
  // Returns the agent's next message; std::nullopt: none.
  std::optional<ipc::Message> next();
  // Waits a little for the answer to this request; other messages stay for next().
  std::optional<ipc::FileAnswer> WaitForFile(uint64_t request);

  // Sends a message to the agent. kClosed: there is no agent; kLimit: it does not read.
  Status Send(ipc::Message message);

  [[nodiscard]] bool connected() const { return agent_.valid(); }
  // Counts connections to agents.
  [[nodiscard]] uint64_t connection() const { return connection_; }
  // Has the keeper sent Exit, or is it gone?
  [[nodiscard]] bool exiting() const { return exiting_; }

  // Sets what the next heartbeats say.
  void SetHealth(uint64_t done, uint64_t pending) {
    done_ = done;
    pending_ = pending;
  }

  static uint64_t NowNs();

 private:
  void Beat();
  void ReceiveFromKeeper();
  void ReceiveFromAgent();
  void EndAgent(const Error& error);

  ipc::Connection keeper_;
  ipc::Connection agent_;
  std::deque<ipc::Message> queue_;
  uint64_t connection_ = 0;
  bool exiting_ = false;
  uint64_t beat_ns_ = 0;
  uint64_t done_ = 0;
  uint64_t pending_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_AGENT_LINK_H_
