// SPDX-License-Identifier: Apache-2.0
// The descriptors that outlive an agent: ring sets, journals, sockets. The agent gives them names
// and notes; a descriptor from a doorbell has no note until the agent writes one. The keeper's
// thread owns it.
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

// The ring sets of one doorbell are at most this many times the free places. A pod that calls
// without end thus gets 8/9 of all places, two such pods 16/17, and there is always room for a pod
// with few.
inline constexpr size_t kShareOfFree = 8;

class Vault {
 public:
  // `limit`: descriptors, the agent's too, up to which doorbells may bring more.
  explicit Vault(size_t limit) : limit_(limit) {}

  // False: full, or this doorbell has its share.
  [[nodiscard]] bool HasRoomFor(const std::string& doorbell) const;
  // kLimit: there is no room. The caller's descriptor is closed; while it has its ring set mapped,
  // the agent can find it.
  Status AddCaller(Caller caller);
  // What the agent is told of a caller that cannot be kept.
  static ipc::Message AsRefused(Caller caller);
  // What the vault of another keeper told: keys go on. There is always room.
  void Inherit(ipc::Kept kept);
  void Inherit(ipc::Arrived arrived);
  // kInvalid: no descriptor, and none there under this name.
  Status Keep(ipc::Keep keep);
  void Drop(const std::string& key);

  // A new agent knows nothing.
  void ForgetWhatWasTold();
  // The next entry that the agent has not been told of, as Kept or Arrived; nothing when it knows
  // all. It counts as told from then on.
  std::optional<ipc::Message> NextUntold();
  [[nodiscard]] bool HasUntold() const { return !untold_.empty(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  // That were dropped, ever: it grows while descriptors come back.
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  struct Entry {
    std::string meta;
    UniqueFd fd;
    std::optional<Caller> caller;  // its fd is empty
    std::optional<std::string>
        doorbell;  // that brought it, also when the agent has written its note
  };

  static size_t DescriptorsOf(const Entry& entry);
  void Add(const std::string& key, Entry entry);

  size_t limit_;
  size_t descriptors_ = 0;
  uint64_t dropped_ = 0;
  uint64_t next_caller_ = 1;
  std::map<std::string, Entry> entries_;
  std::map<std::string, size_t> brought_;   // entries there are, by doorbell
  std::map<uint64_t, std::string> untold_;  // in the order of arrival
  uint64_t next_untold_ = 1;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_VAULT_H_
