// SPDX-License-Identifier: Apache-2.0
// The events that the agent reports to the code that decides: local mode (local/) or the node of a
// cluster (cluster/). That code holds the agent and calls down; the agent knows only this
// interface. All calls are in the agent's loop.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_AGENT_LISTENER_H_
#define WEFT_NODE_AGENT_AGENT_CORE_AGENT_LISTENER_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/session/session_listener.h"

namespace weft::agent {

class AgentListener : public SessionListener {
 public:
  // Called when the keeper brings back a descriptor that was kept. Takes it and returns true if the
  // listener had it kept; else returns false.
  virtual bool TakeKept(ipc::Kept& kept) = 0;
  // Called when the keeper has brought back everything: opens the sessions, containers and sockets
  // of the agent before, or the first ones. An error ends the agent.
  virtual Status Restore() = 0;
  // Everything that was on is on again.
  virtual void Resumed() {}

  // Called when the kernel killed a consumer for its memory. Another one goes on in its place. In a
  // cluster only.
  virtual void ConsumerOutOfMemory(const std::string& /*consumer*/, const std::string& /*why*/) {}
  // Called when a consumer keeps failing and is not started again for a while.
  virtual void ConsumerFailed(const std::string& consumer, const std::string& why) = 0;
  // Called when the process that started the keeper has ended.
  virtual void OwnerGone() = 0;
  // Called every kTick. `now_ns`: CLOCK_MONOTONIC.
  virtual void Tick(int64_t now_ns) = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_AGENT_LISTENER_H_
