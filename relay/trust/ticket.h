// SPDX-License-Identifier: Apache-2.0
// Tickets, with which a node's consumers prove to this relay for which node and namespace they
// speak (docs/adr/0051). An agent gets them, and gives a consumer that of its namespace.
//
// A ticket is text: "EXPIRES.PROOF". EXPIRES is a time of this process's steady clock in seconds;
// PROOF is HMAC-SHA256 over EXPIRES, node and namespace, with a key that this process made at its
// start: the next relay refuses it, and the agent gets another one.
// Thread-safety: all functions may be called from any thread.
#ifndef WEFT_RELAY_TRUST_TICKET_H_
#define WEFT_RELAY_TRUST_TICKET_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::relay_trust {

// How long a ticket opens sessions. Sessions that are open go on after that. It bounds for how long
// a ticket of a node that was removed can be used.
inline constexpr std::chrono::seconds kTicketLifetime{600};
inline constexpr size_t kTicketKeyBytes = 32;

enum class TicketFault {
  kNone,
  kAbsent,
  kWrong,  // another relay's, node's or namespace's, or no ticket at all
  kExpired,
};

class TicketBook {
 public:
  using Now = std::function<std::chrono::seconds()>;

  // With a random key. kIo: there are no random numbers.
  static Result<TicketBook> Make();
  TicketBook(const std::array<uint8_t, kTicketKeyBytes>& key, Now now)
      : key_(key), now_(std::move(now)) {}

  // kIo: OpenSSL has no HMAC.
  [[nodiscard]] Result<std::string> Issue(std::string_view node,
                                          std::string_view kubernetes_namespace) const;
  // `ticket` is foreign.
  [[nodiscard]] TicketFault Check(std::string_view node, std::string_view kubernetes_namespace,
                                  std::string_view ticket) const;

 private:
  [[nodiscard]] std::string Proof(std::string_view node, std::string_view kubernetes_namespace,
                                  std::string_view expires) const;

  std::array<uint8_t, kTicketKeyBytes> key_;
  Now now_;
};

}  // namespace weft::relay_trust

#endif  // WEFT_RELAY_TRUST_TICKET_H_
