// SPDX-License-Identifier: Apache-2.0
// The events of sessions: the parts of the agent report them upwards, and do not know to what. All
// calls are in the agent's loop.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_SESSION_LISTENER_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_SESSION_LISTENER_H_

#include <string>

#include "node-agent/agent/session/session.h"

namespace weft::agent {

class SessionListener {
 public:
  virtual ~SessionListener() = default;

  // A channel of the session changed its phase, became ready, or is no longer ready. The listener
  // may remove the session only after this call.
  virtual void SessionChanged(Session& session) = 0;
  // A channel's output, or its part in weft.ko, cannot be made; `why` is for people.
  virtual void ChannelFailed(Session& session, const std::string& why) = 0;
  // Takes a message for users.
  virtual void Note(std::string text) = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_SESSION_LISTENER_H_
