// SPDX-License-Identifier: Apache-2.0
// A node's session: its control connection, and its data connection once that came. The coroutines
// that read these own it; it ends when either does. Includes Asio: for server.cc and its parts
// only.
//
// Thread-safety: all on the thread that runs the executor.
#ifndef WEFT_RELAY_INGEST_SESSION_H_
#define WEFT_RELAY_INGEST_SESSION_H_

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lib/metrics/registry.h"
#include "lib/stream/receiver.h"
#include "relay/ingest/peer.h"
#include "relay/ingest/refusals.h"
#include "relay/ingest/stream_shares.h"
#include "relay/trust/gate.h"

namespace weft::ingest {

// What the sessions of a server have in common; outlives them.
struct SessionContext {
  stream::Archive& archive;
  metrics::Registry& metrics;
  Refusals& refusals;
  Scratch& scratch;
  StreamShares& shares;
  const relay_trust::Gate* gate = nullptr;  // null: all are welcome (local mode)
};

// Notes why a connection could not be read, unless its peer only went away.
void NoteReadError(Refusals& refusals, const std::string& who, const Error& error);

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Called when a session is to be welcomed; what it returns is why not.
  using Welcomed = std::function<Status(Session&)>;

  Session(const SessionContext& context, std::shared_ptr<Peer> control, Welcomed welcomed);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] uint64_t number() const { return receiver_.session(); }
  [[nodiscard]] const stream::Hello& hello() const { return receiver_.hello(); }
  [[nodiscard]] bool welcomed() const { return receiver_.welcomed(); }
  [[nodiscard]] bool is_closed() const { return closed_; }

  // Takes the session's data connection, for ReadData. False: it has one, or wants none (yet).
  [[nodiscard]] bool TakeData(std::shared_ptr<Peer> data);

  // Reads a connection until it ends, and ends the session then.
  asio::awaitable<void> ReadControl(std::chrono::milliseconds hello_limit);
  asio::awaitable<void> ReadData(size_t header_size);

  // Counts and logs it, tells the node, and closes.
  void Refuse(const char* reason, const Error& error);
  // The archive has its traces back; what is to be said is sent before the connection ends.
  void Close();

 private:
  asio::awaitable<void> Decide();
  void Accept(const Status& status);
  void Write();
  [[nodiscard]] std::string Who() const;

  SessionContext context_;
  stream::Receiver receiver_;
  Welcomed when_welcomed_;
  std::shared_ptr<Peer> control_;
  std::shared_ptr<Peer> data_;  // null: it has not come
  size_t bytes_before_welcome_ = 0;
  size_t streams_ = 0;  // that are open, as StreamShares knows it
  bool closed_ = false;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_SESSION_H_
