// SPDX-License-Identifier: Apache-2.0
// The relay's listeners for nodes: control and data connections become sessions
// (lib/stream/receiver.h) on one archive. One thread, that of Run; the other functions may be
// called from any. TLS comes in where a connection is accepted: a session sees bytes only.
#ifndef WEFT_RELAY_INGEST_SERVER_H_
#define WEFT_RELAY_INGEST_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/metrics/registry.h"
#include "lib/stream/receiver.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {

class Server {
 public:
  // Addresses as "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0: any. kInvalid: no address; kIo: taken.
  // A connection that has not said hello within `hello_limit` is closed.
  static Result<std::unique_ptr<Server>> Make(stream::Archive& archive, metrics::Registry& metrics,
                                              const std::string& control, const std::string& data,
                                              std::chrono::milliseconds hello_limit = kHelloTime);
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
