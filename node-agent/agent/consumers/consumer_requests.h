// SPDX-License-Identifier: Apache-2.0
// Opens files and connections for consumers, which may not open any themselves: files beneath the
// output folder only, connections to the relay of the channel that the consumer names only. In a
// cluster a connection comes with what it takes to trust the relay, and with a ticket for it.
//
// Invariant: a request is answered on the connection that it came over, or not at all.
// The agent's thread calls.
#ifndef WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_REQUESTS_H_
#define WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_REQUESTS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lib/ipc/loop.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/consumers/consumer_pool.h"
#include "node-agent/agent/consumers/dialer.h"
#include "node-agent/agent/consumers/output_folder.h"
#include "node-agent/agent/consumers/relay_access.h"
#include "node-agent/agent/session/session_store.h"

namespace weft::agent {

class ConsumerRequests {
 public:
  using Note = std::function<void(std::string)>;  // a message for people
  using Changed = std::function<void(Session&)>;  // its relay_failure or relay_refusal

  // All outlive this.
  ConsumerRequests(ipc::Loop& loop, ConsumerPool& consumers, const SessionStore& sessions,
                   Note note, Changed changed)
      : consumers_(consumers),
        sessions_(sessions),
        note_(std::move(note)),
        changed_(std::move(changed)),
        dialer_(loop) {}

  // The folder of a local session's files, where there is no relay.
  void SetOutput(OutputFolder folder) { output_.emplace(std::move(folder)); }

  // In a cluster: `access` outlives this. Without it, connections have no TLS and need no ticket.
  void SetRelayAccess(RelayAccess& access) { access_ = &access; }

  void OpenFile(ConsumerLink& link, const ipc::FileRequest& request);
  void Connect(const ConsumerLink& link, const ipc::ConnectionRequest& request);
  // The relay of a session refuses what the consumer sends, or takes it again.
  void NoteRefusal(const ConsumerLink& link, const ipc::RelayRefusal& refusal);

 private:
  // One request: where its answer goes to.
  struct Asked {
    std::string consumer;
    uint64_t connection = 0;  // its number
    uint64_t request = 0;
    uint64_t channel_id = 0;
  };
  void Dial(const Asked& asked, const ipc::RelayAddress& relay, bool data, const RelayPass& pass);
  void Answer(const Asked& asked, Result<ipc::ConnectionAnswer> answer);
  // Whether the relay of this channel's session could be connected to.
  void NoteRelay(const std::string& consumer, uint64_t channel_id, const std::string& failure);

  ConsumerPool& consumers_;
  const SessionStore& sessions_;
  const Note note_;
  const Changed changed_;
  std::optional<OutputFolder> output_;
  RelayAccess* access_ = nullptr;
  Dialer dialer_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CONSUMERS_CONSUMER_REQUESTS_H_
