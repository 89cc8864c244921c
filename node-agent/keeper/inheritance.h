// SPDX-License-Identifier: Apache-2.0
// What one keeper of a node leaves to the next (lib/ipc/messages.h, keeper <-> keeper).
// Thread-safety: plain value.
#ifndef WEFT_NODE_AGENT_KEEPER_INHERITANCE_H_
#define WEFT_NODE_AGENT_KEEPER_INHERITANCE_H_

#include <map>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "node-agent/keeper/vault.h"

namespace weft::keeper {

// By the doorbell's name: connections whose message was not read.
using SilentCallers = std::map<std::string, std::vector<UniqueFd>>;

struct Inheritance {
  explicit Inheritance(size_t kept_limit) : vault(kept_limit) {}

  Vault vault;
  SilentCallers silent;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_INHERITANCE_H_
