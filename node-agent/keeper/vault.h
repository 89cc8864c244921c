// SPDX-License-Identifier: Apache-2.0
// The descriptors that outlive an agent: ring sets, journals, sockets. The agent gives them names and
// notes; what a doorbell brought has no note until the agent wrote one.
// The keeper's thread owns it.
#ifndef WEFT_NODE_AGENT_KEEPER_VAULT_H_
#define WEFT_NODE_AGENT_KEEPER_VAULT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"
#include "node-agent/keeper/doorbell.h"

namespace weft::keeper {

class Vault {
 public:
  // `limit`: entries that doorbells may fill; what comes beyond it is closed.
  explicit Vault(size_t limit) : limit_(limit) {}

  // kLimit: full; the caller's descriptor is closed, its ring set lost.
  Status AddCaller(Caller caller);
  // kInvalid: no descriptor, and none there under this name.
  Status Keep(ipc::Keep keep);
  void Drop(const std::string& key);

  // A new agent knows nothing.
  void ForgetWhatWasTold();
  // The next entry that the agent has not been told of, as Kept or Arrived; nothing when it knows all.
  // It counts as told from then on.
  std::optional<ipc::Message> NextUntold();
  [[nodiscard]] bool HasUntold() const { return !untold_.empty(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string meta;
    UniqueFd fd;
    std::optional<Caller> caller;  // its fd is empty
  };

  size_t limit_;
  uint64_t next_caller_ = 1;
  std::map<std::string, Entry> entries_;
  std::map<uint64_t, std::string> untold_;  // in the order of arrival
  uint64_t next_untold_ = 1;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_VAULT_H_
