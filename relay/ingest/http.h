// SPDX-License-Identifier: Apache-2.0
// Serves /metrics and /healthz to scrapers and probes, on lib/http's server.
#ifndef WEFT_RELAY_INGEST_HTTP_H_
#define WEFT_RELAY_INGEST_HTTP_H_

#include <functional>
#include <memory>
#include <string>

#include "lib/base/result.h"

namespace weft::ingest {

class HttpServer {
 public:
  struct Answers {
    std::function<std::string()> metrics;
    std::function<bool()> healthy;
  };
  // `address` as "ADDRESS:PORT". The functions are called from the server's threads,
  // several at a time. kInvalid: no address; kIo: taken.
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, Answers answers);
  // Ends its threads.
  virtual ~HttpServer() = default;

  [[nodiscard]] virtual std::string address() const = 0;
};

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_HTTP_H_
