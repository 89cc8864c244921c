// SPDX-License-Identifier: Apache-2.0
// Makes TCP connections for consumers, which cannot make them. To resolve a name and to connect
// may each take seconds, so every dial has a thread of its own. Used by the agent's thread.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"

namespace weft::agent {

class Dialer {
 public:
  explicit Dialer(ipc::Loop& loop) : loop_(&loop) {}
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();

  // Called in the loop: a connected socket, or why there is none.
  using Done = std::function<void(Result<UniqueFd>)>;
  void Dial(const std::string& host, uint16_t port, Done done);

 private:
  struct Finished;
  Status Start();
  void TakeFinished();

  ipc::Loop* loop_;
  std::shared_ptr<Finished> finished_;  // the threads', too
  std::map<uint64_t, Done> waiting_;
  uint64_t next_ = 1;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_DIALER_H_
