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

#include "lib/base/unique_fd.h"
#include "lib/ipc/connection.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/consumers/journal_files.h"

namespace weft::agent {

class ConsumerLink {
 public:
  // Messages are made when they can be sent, so that their descriptors are copied only then.
  using Make = std::function<ipc::Message()>;

  ConsumerLink(std::string name, JournalFile journal)
      : name_(std::move(name)), journal_(std::move(journal)) {}
  // The journal and its note, to outlive this agent, under "journal/NAME".
  [[nodiscard]] ipc::Keep ToKeep() const;

  // `number`: no other connection of this agent has it.
  void Connect(UniqueFd socket, uint64_t number);
  void Close();
  void Greeted() { greeted_ = true; }
  void Tell(Make make);
  void Pump();
  [[nodiscard]] ipc::Configure Configuration(uint32_t clock, uint32_t slot_count) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ipc::Connection& connection() { return connection_; }
  // The number of the last connection; 0: there was none.
  [[nodiscard]] uint64_t connection_number() const { return connection_number_; }

  bool given_up = false;  // it keeps failing
  std::string reason;     // how it ended last

 private:
  std::string name_;
  JournalFile journal_;
  ipc::Connection connection_;
  bool greeted_ = false;
  uint64_t connection_number_ = 0;
  std::deque<Make> waiting_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_LINK_H_
