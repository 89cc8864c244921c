// SPDX-License-Identifier: Apache-2.0
// Makes TCP connections for consumers, which cannot make them. To resolve a name and to connect
// may each take seconds, so every dial has a thread of its own. Used by the agent's thread.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_

#include <string>

#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"
#include "node-agent/agent/base/background_calls.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

class Dialer {
 public:
  explicit Dialer(ipc::Loop& loop) : calls_(loop, kMaxDials) {}

  // Called in the loop: a connected socket, or why there is none.
  using Done = BackgroundCalls<UniqueFd>::Done;
  void Dial(const std::string& host, uint16_t port, Done done);

 private:
  BackgroundCalls<UniqueFd> calls_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_
