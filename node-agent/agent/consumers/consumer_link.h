// SPDX-License-Identifier: Apache-2.0
// The agent's end of one consumer: its connection, the messages that wait for it, and its journal.
// In local mode there is one consumer, called kConsumerName; in a cluster there is one per
// namespace, with the namespace's name. The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_LINK_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_LINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/connection.h"
#include "lib/ipc/messages.h"

namespace weft::agent {

class ConsumerLink {
 public:
  // Messages are made when they can be sent, so that their descriptors are copied only then.
  using Make = std::function<ipc::Message()>;

  // A new consumer, with an empty journal and today's clock.
  static Result<ConsumerLink> Begin(std::string name);
  // One that an earlier agent began: `meta` and `fd` of what ToKeep gave.
  static Result<ConsumerLink> Restore(std::string name, const std::string& meta, UniqueFd fd);
  // Journal and clock, to outlive this agent, under "journal/NAME".
  [[nodiscard]] ipc::Keep ToKeep() const;

  void Connect(UniqueFd socket);
  void Close();
  void Greeted() { greeted_ = true; }
  void Tell(Make make);
  void Pump();
  [[nodiscard]] ipc::Configure Configuration(uint32_t clock, uint32_t slot_count) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ipc::Connection& connection() { return connection_; }
  [[nodiscard]] uint64_t connections() const { return connections_; }  // that there were

  bool given_up = false;  // it keeps failing
  std::string reason;     // how it ended last

 private:
  ConsumerLink() = default;

  std::string name_;
  UniqueFd journal_;
  int64_t realtime_offset_ns_ = 0;
  Uuid clock_uuid_{};
  ipc::Connection connection_;
  bool greeted_ = false;
  uint64_t connections_ = 0;
  std::deque<Make> waiting_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_LINK_H_
