// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server, plain or TLS, for what a part of weft is asked: the webhook's reviews, /metrics,
// /healthz. The one boundary to Boost.Beast, whose headers are in server.cc only.
//
// Threads: a few of its own; the handler is called on them, several at a time. Limits below hold for
// every peer: anybody in a cluster can connect.
#ifndef WEFT_LIB_HTTP_SERVER_H_
#define WEFT_LIB_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/base/result.h"

namespace weft::http {

// An AdmissionReview of the largest object an API server takes (3 MiB) with room.
inline constexpr std::size_t kMaxBodyBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxHeadBytes = 16 * 1024;
// API servers and Prometheus keep a handful open each; more are somebody's mistake, or not meant well.
inline constexpr int kMaxConnections = 256;
// From one byte to the next whole step (handshake, request, answer), so that nobody holds a connection
// by being slow. An idle connection ends with it too; clients make another.
inline constexpr std::chrono::seconds kStepLimit{30};
inline constexpr int kThreads = 2;

struct Request {
  std::string method;
  std::string path;  // as sent, without the query
  std::string query;
  std::string body;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using Handler = std::function<Response(const Request&)>;

struct Certificate {
  std::string chain_pem;
  std::string key_pem;
};

class Server {
 public:
  struct Options {
    std::string address = "::";  // an IP address; "::" takes IPv4 too, where there is IPv6
    std::uint16_t port = 0;      // 0: any
    bool tls = false;            // refuses connections until it has a certificate
  };

  // Listens and serves from now on.
  static Result<std::unique_ptr<Server>> Start(const Options& options, Handler handler);
  ~Server();  // ends connections; waits for handlers that run
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // For connections from now on; those that are there keep theirs. kInvalid: key and chain do not fit.
  Status SetCertificate(const Certificate& certificate);

  [[nodiscard]] std::uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::http

#endif  // WEFT_LIB_HTTP_SERVER_H_
