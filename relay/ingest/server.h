// SPDX-License-Identifier: Apache-2.0
// The relay's listeners for nodes: control and data connections become sessions
// (lib/stream/receiver.h) on one archive. One thread, that of Run; the other functions may be
// called from any. In a cluster both ports have TLS, and a gate (relay/trust/gate.h) decides
// about each session; without a gate all are accepted, as in local mode.
#ifndef WEFT_RELAY_INGEST_SERVER_H_
#define WEFT_RELAY_INGEST_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/metrics/registry.h"
#include "lib/stream/receiver.h"
#include "relay/ingest/limits.h"
#include "relay/trust/gate.h"

namespace weft::ingest {

class Server {
 public:
  struct Options {
    // As "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0: any.
    std::string control;
    std::string data;
    const relay_trust::Gate* gate = nullptr;  // outlives the server
    // A connection that has not said hello within this time is closed.
    std::chrono::milliseconds hello_limit = kHelloTime;
  };
  // kInvalid: no address; kIo: taken.
  static Result<std::unique_ptr<Server>> Make(stream::Archive& archive, metrics::Registry& metrics,
                                              const Options& options);
  virtual ~Server() = default;

  // Until SIGTERM or SIGINT: then no more connections, what arrived is stored, acknowledged and on
  // the disk.
  virtual Status Run() = 0;

  // Where it listens.
  [[nodiscard]] virtual std::string control_address() const = 0;
  [[nodiscard]] virtual std::string data_address() const = 0;
  // Its loop goes round.
  [[nodiscard]] virtual bool alive() const = 0;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_SERVER_H_
