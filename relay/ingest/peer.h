// SPDX-License-Identifier: Apache-2.0
// One connection that a node opened, with TLS in a cluster, without in local mode. Reads and writes
// bytes of the program; handshake and encryption are inside. Includes Asio: for server.cc and its
// parts only.
//
// A connection without traffic costs a descriptor and OpenSSL's state, but no buffer: all peers of
// a server use the buffers of one Scratch. What Read returns there is valid until the caller waits
// for anything.
//
// Thread-safety: all on the thread that runs the executor.
#ifndef WEFT_RELAY_INGEST_PEER_H_
#define WEFT_RELAY_INGEST_PEER_H_

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/http/connection_budget.h"
#include "lib/tls/engine.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {

struct Scratch {
  std::vector<uint8_t> cipher = std::vector<uint8_t>(kCipherReadBytes);    // of peers with TLS
  std::vector<uint8_t> control = std::vector<uint8_t>(kControlReadBytes);  // of sessions
};

class Peer final : public http::ConnectionBudget::Guest, public std::enable_shared_from_this<Peer> {
 public:
  // `scratch` and `budget` outlive it. `tls`: none in local mode.
  Peer(asio::ip::tcp::socket socket, std::optional<tls::Engine> tls, Scratch& scratch,
       http::ConnectionBudget& budget);
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() override;

  // The address, without the port.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] asio::any_io_executor executor() { return socket_.get_executor(); }
  [[nodiscard]] bool is_open() const { return socket_.is_open(); }
  // False: the handshake has not ended.
  [[nodiscard]] bool established() const { return !tls_ || tls_->established(); }

  // Waits for bytes. Returns how many it wrote into `room`, at least one. Only one Read at a time.
  // kClosed: the connection is over; kLimit: the budget closed it; else the peer broke TLS.
  asio::awaitable<Result<size_t>> Read(std::span<uint8_t> room);
  // Sends `bytes` behind what waits to be sent. After Close it does nothing.
  void Write(std::string bytes);
  // Bytes that wait to be sent.
  [[nodiscard]] size_t backlog() const { return waiting_.size() + writing_.size(); }
  // Ends the connection when what waits was sent, or after kLastWordsTime. A Read that waits ends.
  void Close();

  // For the budget: closes the connection at once.
  std::function<void()> Evict() override;

 private:
  void Send();
  void CloseSocket();

  asio::ip::tcp::socket socket_;
  std::optional<tls::Engine> tls_;
  Scratch& scratch_;
  http::ConnectionBudget& budget_;
  std::string address_;
  std::string waiting_;  // plain
  std::string writing_;  // as it is on the network
  size_t spent_ = 0;     // of its turn: bytes that were read since other peers could
  bool closing_ = false;
  bool evicted_ = false;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_PEER_H_
