// SPDX-License-Identifier: Apache-2.0
// Gets tickets from relays for this node's consumers (docs/adr/0051), and knows the CA of the
// relays' certificates. The agent alone holds the token that proves its node, and shows it to a
// relay only that has a certificate of this CA, for the name that the TraceSession gives.
//
// Invariants:
//   1. A ticket is given out until a relay refused it, or its lifetime is over. When half of this
//      is over, a request for it also begins to get a new one, and does not wait for that. A
//      consumer that claims refusals makes the agent ask its relay every kTicketPause at most.
//   2. One request for a relay and a namespace is under way at a time; what is asked for meanwhile
//      gets its answer.
//   3. A CA that was known once is trusted until it is replaced.
//
// The watch of the CA has a thread of its own, and so has every request to a relay; all else runs
// in the agent's loop.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_RELAY_TICKETS_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_RELAY_TICKETS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/loop.h"
#include "lib/kube/client.h"
#include "lib/kube/informer.h"
#include "node-agent/agent/base/background_calls.h"
#include "node-agent/agent/consumers/relay_access.h"

namespace weft::agent {

struct RelayTicketOptions {
  using Clock = std::chrono::steady_clock;

  std::string token_file;     // the token with the audience weft-relay; "": relays need none
  uint16_t api_port = 4463;   // of relays
  std::string own_namespace;  // weft's, where the CA is
  std::string authorities_map = "weft-relay-ca";  // the ConfigMap, which the controller writes
  std::function<Clock::time_point()> now = Clock::now;
};

// A relay's answer. kCorrupt: it is none.
struct RelayTicket {
  std::string text;
  std::chrono::seconds lifetime{0};
};
Result<RelayTicket> ParseRelayTicket(const std::string& json);

class RelayTickets final : public RelayAccess {
 public:
  using Clock = RelayTicketOptions::Clock;

  // `client` and `loop` outlive this.
  RelayTickets(kube::Client& client, ipc::Loop& loop, RelayTicketOptions options);
  RelayTickets(const RelayTickets&) = delete;
  RelayTickets& operator=(const RelayTickets&) = delete;
  ~RelayTickets() override = default;

  void GetPass(const std::string& relay_host, const std::string& kubernetes_namespace,
               bool was_refused, Done done) override;
  [[nodiscard]] Result<std::string> authorities() const override;

 private:
  using Key = std::pair<std::string, std::string>;  // relay, namespace
  struct Entry {
    std::string ticket;
    Clock::time_point made{};
    Clock::time_point renew{};
    Clock::time_point expires{};
    bool was_refused = false;
    bool is_asked_for = false;  // a request is under way
    std::vector<Done> waiting;  // for it
  };

  void UseMap(const kube::Json& map);
  void Finish(const Key& key, const Result<RelayTicket>& result);

  const RelayTicketOptions options_;
  BackgroundCalls<RelayTicket> calls_;
  std::map<Key, Entry> entries_;
  mutable std::mutex mutex_;
  std::string authorities_;
  std::string problem_ = "it is not known yet";
  std::unique_ptr<kube::Informer> informer_;  // last: its thread uses the others
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_RELAY_TICKETS_H_
