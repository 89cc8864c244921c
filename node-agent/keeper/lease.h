// SPDX-License-Identifier: Apache-2.0
// The right to read the ring sets of a node: a lock (flock) on DIR/keeper.lock, which one keeper of
// the node holds, with the agent and the consumers that it starts. The kernel gives it to another
// keeper when the last of these processes has closed it or has ended, however it ended.
// Thread-safety: plain value.
#ifndef WEFT_NODE_AGENT_KEEPER_LEASE_H_
#define WEFT_NODE_AGENT_KEEPER_LEASE_H_

#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::keeper {

class Lease {
 public:
  // `dir` exists, on a file system of this machine. "": there is no lease, and none is needed.
  explicit Lease(std::string dir) : dir_(std::move(dir)) {}

  // True: this keeper holds it. kIo: there can be no such file.
  Result<bool> TryTake();
  // Closes this process's descriptor.
  void GiveUp() { fd_.reset(); }
  // For children (ipc::StartChild); -1: not held.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  std::string dir_;
  UniqueFd fd_;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_LEASE_H_
