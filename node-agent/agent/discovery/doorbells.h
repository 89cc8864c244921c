// SPDX-License-Identifier: Apache-2.0
// The doorbells: sockets at which traced processes hand over their ring sets. The keeper accepts
// their callers and keeps a copy of each socket, so that no caller is turned away while there is no
// agent.
//
// Invariant: the keeper has a copy of each socket here, under "doorbell/NAME", and answers it.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

class Doorbells {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper

  explicit Doorbells(Send keeper) : keeper_(std::move(keeper)) {}

  // Opens the doorbell of this name in this folder, or goes on with the one that was kept.
  Status Open(const std::string& name, const std::string& folder);
  void Close(const std::string& name);
  [[nodiscard]] std::vector<std::string> Names() const;
  // Takes a doorbell that the keeper kept; false: it is none.
  bool TakeKept(ipc::Kept& kept);

 private:
  const Send keeper_;
  std::map<std::string, UniqueFd> sockets_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_
