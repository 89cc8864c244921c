// SPDX-License-Identifier: Apache-2.0
// The doorbells: sockets at which traced processes hand over their ring sets, each with a FIFO for
// the names of ring sets that could not be handed over (lib/abi/control.h). The keeper accepts the
// sockets' callers and keeps a copy of each socket, so that no caller is turned away while there is
// no agent. Names wait in the FIFO until the agent reads them.
//
// Invariants:
//   1. The keeper has a copy of each socket here, under "doorbell/NAME", and answers it.
//   2. The keeper has a copy of each FIFO here, under "names/NAME": names outlive the agent.
//   3. A name leaves its FIFO after `save` has put it on disk.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/abi/control.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

class Doorbells {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper
  // Takes a name from the FIFO of this doorbell. The name is foreign bytes, and may come again.
  using TakeName = std::function<void(const std::string& doorbell, const weft_doorbell& name)>;

  explicit Doorbells(Send keeper) : keeper_(std::move(keeper)) {}

  // Opens the doorbell of this name in this folder, or goes on with the one that was kept.
  Status Open(const std::string& name, const std::string& folder);
  void Close(const std::string& name);
  [[nodiscard]] std::vector<std::string> Names() const;
  // Reads names that wait in the FIFOs, up to a bound. False: there were none.
  bool ReadNames(const TakeName& take, const std::function<void()>& save);
  // Takes a descriptor that the keeper kept for a doorbell; false: it is none.
  bool TakeKept(ipc::Kept& kept);

 private:
  struct Doorbell {
    UniqueFd socket;
    UniqueFd names;
  };
  // Calls `take` for the names that are first in the FIFO and leaves them there. Their bytes.
  size_t LookInto(const std::string& name, const UniqueFd& fifo, const TakeName& take);

  const Send keeper_;
  std::map<std::string, Doorbell> doorbells_;
  // A pipe that gets what tee(2) copies.
  UniqueFd copy_out_;
  UniqueFd copy_in_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_DOORBELLS_H_
