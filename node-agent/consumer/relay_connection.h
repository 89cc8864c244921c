// SPDX-License-Identifier: Apache-2.0
// One connection to a relay: a socket that the agent opened, with TLS on it in a cluster, without
// in local mode. Nothing here blocks. Used by the service's thread.
#ifndef WEFT_NODE_AGENT_CONSUMER_RELAY_CONNECTION_H_
#define WEFT_NODE_AGENT_CONSUMER_RELAY_CONNECTION_H_

#include <poll.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/tls/engine.h"

namespace weft::consumer {

// Which relay to believe. Both "": any, without TLS.
struct RelayTrust {
  std::string authorities;  // PEM
  std::string server_name;
};

class RelayConnection {
 public:
  // Begins the handshake, where there is TLS.
  Status Open(UniqueFd socket, const RelayTrust& trust);
  void Close();

  [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
  // Can bytes be sent? With TLS not before the handshake has ended.
  [[nodiscard]] bool established() const { return is_open() && (!tls_ || tls_->established()); }

  // Takes what arrived; also moves the handshake on. Returns 0 if nothing is there now. kClosed:
  // the relay closed the connection.
  Result<size_t> Receive(std::span<uint8_t> room);
  // Returns how many bytes of both it took; 0: none now.
  Result<size_t> Send(Bytes front, Bytes rest);
  // Sends what was taken and is not sent yet.
  Status Flush();
  // Returns what to wait for; `has_bytes`: the caller has bytes to send.
  [[nodiscard]] pollfd Poll(bool has_bytes) const;

 private:
  Result<size_t> ReceiveCipher(tls::Engine& tls);

  UniqueFd socket_;
  std::optional<tls::Engine> tls_;
  std::vector<uint8_t> cipher_;  // room for what arrives; kept, since it is used often
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RELAY_CONNECTION_H_
