// SPDX-License-Identifier: Apache-2.0
// Decides which sessions of nodes a relay in a cluster accepts: those with a ticket for their node
// and namespace, and with a TraceSession for their node and Trace. It also has the certificate of
// the relay's ports for nodes. One thread of its own watches TraceSessions.
// Thread-safety: all functions may be called from any thread.
#ifndef WEFT_RELAY_TRUST_GATE_H_
#define WEFT_RELAY_TRUST_GATE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/kube/client.h"
#include "lib/kube/informer.h"
#include "lib/stream/control.h"
#include "lib/tls/engine.h"
#include "relay/trust/session_table.h"
#include "relay/trust/ticket.h"

namespace weft::relay_trust {

struct Decision {
  enum class Kind {
    kAdmit,
    kWait,  // its TraceSession may be on its way: ask again
    kRefuse,
  };
  Kind kind = Kind::kRefuse;
  const char* reason = "";  // in weft_relay_refused_sessions_total
  std::string message;      // for the node
};

class Gate {
 public:
  explicit Gate(TicketBook tickets) : tickets_(std::move(tickets)) {}

  // Begins to watch TraceSessions. `client` outlives the gate. `log` gets lines from any thread.
  void Watch(kube::Client& client, std::function<void(const std::string&)> log);
  [[nodiscard]] SessionTable& sessions() { return sessions_; }

  // Sets the certificate of new connections. kInvalid: key and certificate do not match.
  Status SetCertificate(const std::string& chain_pem, const std::string& key_pem);
  // std::nullopt: there is none yet.
  [[nodiscard]] std::optional<tls::ServerContext> certificate() const;

  [[nodiscard]] Result<std::string> IssueTicket(const std::string& node,
                                                const std::string& kubernetes_namespace) const {
    return tickets_.Issue(node, kubernetes_namespace);
  }
  [[nodiscard]] Decision Decide(const stream::Hello& hello) const;
  // Is the TraceSession of a session that was admitted gone for longer than it takes to deliver
  // what is left?
  [[nodiscard]] bool IsOver(const stream::Hello& hello) const {
    return sessions_.Find(hello) == SessionTable::State::kAbsent;
  }

 private:
  const TicketBook tickets_;
  SessionTable sessions_;
  mutable std::mutex mutex_;
  std::optional<tls::ServerContext> certificate_;
  std::unique_ptr<kube::Informer> informer_;  // last: its thread uses the others
};

}  // namespace weft::relay_trust

#endif  // WEFT_RELAY_TRUST_GATE_H_
