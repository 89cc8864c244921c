// SPDX-License-Identifier: Apache-2.0
// What a consumer needs besides a socket, so that it believes a relay and the relay believes it.
// The agent of a cluster's node implements it (cluster/relay_tickets.h); in local mode there is
// none. Used by the agent's thread.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_RELAY_ACCESS_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_RELAY_ACCESS_H_

#include <functional>
#include <string>

#include "lib/base/result.h"

namespace weft::agent {

struct RelayPass {
  std::string authorities;  // PEM: those that may have signed the relay's certificate
  std::string ticket;       // for this node and the consumer's namespace
};

class RelayAccess {
 public:
  using Done = std::function<void(Result<RelayPass>)>;
  virtual ~RelayAccess() = default;

  // Calls `done` in the loop, perhaps before it returns. `was_refused`: the relay refused the last
  // session, so a ticket that is here already may be of no use.
  virtual void GetPass(const std::string& relay_host, const std::string& kubernetes_namespace,
                       bool was_refused, Done done) = 0;
  // Returns what a data connection needs. kNotFound: it is not known yet.
  [[nodiscard]] virtual Result<std::string> authorities() const = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_RELAY_ACCESS_H_
