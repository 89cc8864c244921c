// SPDX-License-Identifier: Apache-2.0
// Who tells the agent what to do, and is told what became of it: the cli in local mode
// (local_mode.h), the API server in a cluster (cluster/). All calls are in the agent's loop.
#ifndef WEFT_NODE_AGENT_AGENT_CORE_ORDERS_H_
#define WEFT_NODE_AGENT_AGENT_CORE_ORDERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {

// A process that has a ring set, as the kernel knows it.
struct CallerId {
  const std::string* doorbell = nullptr;  // it came over this one; null: it was found
  int32_t pid = 0;
  const UniqueFd* pidfd = nullptr;
};

class Orders {
 public:
  virtual ~Orders() = default;

  // A descriptor that the keeper kept for this; false: not its own.
  virtual bool TakeKept(ipc::Kept& kept) = 0;
  // All that was kept is known: opens sessions, containers and sockets of before, or the first
  // ones.
  virtual Status Open() = 0;
  // What was on before is on again: orders may come from now on.
  virtual void Resumed() {}

  // Whether a ring set of this container's may come from that process. The kernel says it.
  virtual bool Belongs(const std::string& container, const CallerId& caller) = 0;
  // The container that a process is in; none: not one of these.
  virtual std::optional<std::string> ContainerOf(int32_t pid) = 0;

  // A channel's phase or readiness is another one. The session may be removed meanwhile.
  virtual void Changed(Session& session) = 0;
  virtual void ChannelFailed(Session& session, const std::string& why) = 0;
  virtual void ConsumerFailed(const std::string& consumer, const std::string& why) = 0;
  virtual void OwnerGone() = 0;
  virtual void Tick(int64_t now_ns) = 0;
  // Something a person should know.
  virtual void Note(std::string text) = 0;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CORE_ORDERS_H_
