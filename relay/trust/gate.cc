// SPDX-License-Identifier: Apache-2.0
// See gate.h.
#include "relay/trust/gate.h"

#include <utility>
#include <vector>

#include "lib/base/log_text.h"

namespace weft::relay_trust {
namespace {

Decision Refuse(const char* reason, std::string message) {
  return {.kind = Decision::Kind::kRefuse, .reason = reason, .message = std::move(message)};
}

}  // namespace

void Gate::Watch(kube::Client& client, std::function<void(const std::string&)> log) {
  informer_ = std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kTraceSessions}, kube::Selection{},
      kube::InformerHandlers{
          .on_list = [this](const std::vector<kube::Json>& all) { sessions_.Replace(all); },
          .on_event = [this](const kube::WatchEvent& event) { sessions_.See(event); },
          .on_error =
              [log = std::move(log)](const Error& error) {
                log("TraceSessions: " + ForLog(error.message) +
                    "; sessions are accepted by what was known before");
              }});
}

Status Gate::SetCertificate(const std::string& chain_pem, const std::string& key_pem) {
  WEFT_ASSIGN(auto made, tls::ServerContext::Make(chain_pem, key_pem));
  const std::lock_guard lock(mutex_);
  certificate_ = std::move(made);
  return {};
}

std::optional<tls::ServerContext> Gate::certificate() const {
  const std::lock_guard lock(mutex_);
  return certificate_;
}

Decision Gate::Decide(const stream::Hello& hello) const {
  switch (tickets_.Check(hello.node, hello.kubernetes_namespace, hello.ticket)) {
    case TicketFault::kNone:
      break;
    case TicketFault::kAbsent:
      return Refuse("no_ticket",
                    "the hello has no ticket: weft-agent gets one from the relay's API");
    case TicketFault::kWrong:
      return Refuse("wrong_ticket",
                    "the ticket is not for this node and namespace, or of an earlier relay: get a "
                    "new one");
    case TicketFault::kExpired:
      return Refuse("expired_ticket", "the ticket has expired: get a new one");
  }
  switch (sessions_.Find(hello)) {
    case SessionTable::State::kPresent:
      return {.kind = Decision::Kind::kAdmit};
    case SessionTable::State::kAbsent:
      return {.kind = Decision::Kind::kWait,
              .reason = "no_session",
              .message = "there is no TraceSession of this node for this Trace"};
    case SessionTable::State::kUnknown:
      return {.kind = Decision::Kind::kWait,
              .reason = "unknown_sessions",
              .message =
                  "the relay has not heard of TraceSessions from the API server yet: try "
                  "again"};
  }
  return Refuse("protocol", "");
}

}  // namespace weft::relay_trust
