// SPDX-License-Identifier: Apache-2.0
// The consumers that the agent has asked for: their connections and what waits to be sent on them,
// and the journals that outlive both sides. In local mode there is one consumer, in a cluster one
// for each namespace that has a session.
//
// Invariants:
//   1. The keeper has each consumer's journal, under "journal/NAME", before it starts the consumer.
//   2. A consumer is told things only after its Hello; what was told before a connection ended is
//      forgotten, since all is repeated on the next one.
//   3. The handler gets messages of consumers of this protocol version only.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_POOL_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "lib/base/result.h"
#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/consumers/consumer_link.h"
#include "node-agent/agent/consumers/journal_files.h"

namespace weft::agent {

class ConsumerPool {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper
  using Note = std::function<void(std::string)>;   // a message for people
  // A consumer said this. Its Hello comes first on each connection.
  using Handler = std::function<void(ConsumerLink&, ipc::Message)>;

  // `loop` outlives this.
  ConsumerPool(ipc::Loop& loop, Send keeper, Note note, Handler handler,
               JournalFiles journals = JournalFiles());

  // Has the keeper start the consumer, unless it runs.
  void Start(const std::string& name);
  // Has the keeper end the consumer, and removes its journal.
  void Stop(const std::string& name);
  // Null: it was not started, or was stopped.
  [[nodiscard]] const ConsumerLink* Find(const std::string& name) const;
  // Tells the consumer, if it is connected: a new connection begins with everything anyway.
  void Tell(const std::string& name, ConsumerLink::Make make);
  void TellAll(const ConsumerLink::Make& make);

  // Takes a journal that the keeper kept; false: it is none.
  bool TakeKept(ipc::Kept& kept);
  // Takes these consumers' journals that the keeper did not keep from the disk, where an earlier
  // keeper's consumers left them; other journals on the disk are removed. kTimeout: a process of an
  // earlier keeper still has one.
  Status TakeFromDisk(const std::set<std::string>& names);
  // Has the keeper start all consumers whose journals were kept.
  void StartAll();
  // The keeper has made another connection to a consumer.
  void Connect(ipc::Connect connect);
  // The keeper says that a consumer ended. False: it is none of these.
  bool NoteEnd(const ipc::ConsumerGone& gone);
  // Sends what waits, as far as the connections have room. To be called after each round.
  void Pump();

  // How many messages of consumers were handled: progress, for heartbeats.
  [[nodiscard]] uint64_t handled() const { return handled_; }

 private:
  void OnMessage(ConsumerLink& link, Result<ipc::Message> message);

  ipc::Loop& loop_;
  const Send keeper_;
  const Note note_;
  const Handler handler_;
  const JournalFiles journals_;
  std::map<std::string, std::unique_ptr<ConsumerLink>> links_;
  uint64_t handled_ = 0;
  uint64_t connections_ = 0;  // that there were, of all consumers
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_POOL_H_
