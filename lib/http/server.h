// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server, plain or TLS, for the webhook's reviews, the relay's API, /metrics and
// /healthz. The one boundary to Boost.Beast, whose headers are in server.cc only.
//
// Threads: Options::threads of its own. They call the handler, several at a time. Requests that
// Options::is_urgent names always find a thread: all others leave one free.
//
// Limits: every process in a cluster may connect to these ports, so all connections of a server
// share kMaxConnections places and Options::total_bytes (connection_budget.h decides which one is
// closed), and a slow peer is closed after the limits below.
#ifndef WEFT_LIB_HTTP_SERVER_H_
#define WEFT_LIB_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace weft::http {

// Size of a request's body: room for an AdmissionReview of the largest object that an API server
// takes (3 MiB).
inline constexpr std::size_t kMaxBodyBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxHeadBytes = 16 * 1024;
// Connections. API servers and Prometheus keep a handful open each.
inline constexpr std::size_t kMaxConnections = 256;
// Bytes that a connection counts from its first moment: its buffer and its parsed head.
inline constexpr std::size_t kConnectionBytes = 2 * kMaxHeadBytes;
// Bytes that all connections may hold together: their own, bodies, and answers that their peers
// have not taken. The default has room for two of the largest bodies; on ports without bodies
// kHealthBytes is enough. Both are far below the memory limits of the chart (256 MiB for controller
// and webhook, 1 GiB for agent and relay).
inline constexpr std::size_t kTotalBytes = std::size_t{32} << 20;
inline constexpr std::size_t kHealthBytes = std::size_t{16} << 20;
// Time from the first byte of a TLS handshake or of a request's head to the last one. On a new
// connection the time begins with the connection.
inline constexpr std::chrono::seconds kHeadLimit{5};
// Time for a whole body, and for taking a whole answer, or one block of a streamed body.
inline constexpr std::chrono::seconds kBodyLimit{10};
// Time between two requests of one connection; after it clients make another connection.
inline constexpr std::chrono::seconds kIdleLimit{30};
// Time after a refusal in which the peer can read it, before the connection ends.
inline constexpr std::chrono::seconds kLingerLimit{2};
inline constexpr int kThreads = 2;

// Bytes of a streamed body that are in memory at a time, per connection.
inline constexpr std::size_t kBlockBytes = std::size_t{128} * 1024;

struct Request {
  std::string peer;  // its address, without the port
  std::string method;
  std::string path;  // as sent, without the query
  std::string query;
  std::string body;
  // By names in lower case. A header that was sent twice has both values, with ", " between them.
  std::map<std::string, std::string> headers;

  // "": it was not sent.
  [[nodiscard]] std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

// Produces a body that is too long to be held. The server's threads call it, one at a time.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // The length of the whole body, which is sent before it. None: it is not known, and the body is
  // sent in chunks.
  [[nodiscard]] virtual std::optional<std::uint64_t> bytes() const = 0;
  // Fills `block`, or as much of it as is left of the body, and returns how much. 0 is the end of a
  // body without a length. With an error, or 0 before the end of one with a length, the connection
  // ends: its peer sees that the body is too short.
  virtual Result<std::size_t> Read(std::span<char> block) = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
  // Instead of `body`, if it is not null. It is destroyed when the body was sent, or the connection
  // ends.
  std::shared_ptr<BodySource> source = nullptr;
};

using Handler = std::function<Response(const Request&)>;

// A connection that the server ended, or a request that it refused without its handler.
struct RefusedPeer {
  std::string address;
  // One of kRefusedPeerReasons: its TLS or its HTTP is wrong, it sends a request or takes an answer
  // too slowly, it wants more than the limits allow, or there is no certificate yet.
  const char* reason = "";
  std::string why;  // may have foreign text in it
};
inline constexpr const char* kRefusedPeerReasons[] = {"tls",  "protocol", "timeout",
                                                      "slow", "limit",    "no_certificate"};

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
    std::size_t max_body_bytes = kMaxBodyBytes;  // 0: a request with a body is refused (413)
    std::size_t total_bytes = kTotalBytes;
    int threads = kThreads;
    std::chrono::milliseconds head_limit = kHeadLimit;
    // Returns whether a path, such as a probe's, is answered even while all other requests wait. If
    // this is empty, no path is, and each request may use any thread.
    std::function<bool(const std::string& path)> is_urgent;
    // Told of each refused peer, from several threads at once. Empty: not told.
    std::function<void(const RefusedPeer& peer)> on_refused = {};
  };

  // Listens and serves from now on.
  static Result<std::unique_ptr<Server>> Start(const Options& options, Handler handler);
  ~Server();  // ends connections; waits for handlers that run
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Sets the certificate of new connections; existing ones keep theirs. kInvalid: key and chain do
  // not match.
  Status SetCertificate(const Certificate& certificate);

  [[nodiscard]] std::uint16_t port() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Options of a port for probes and metrics: no bodies, and all paths except /metrics are answered
// while scrapes wait.
Server::Options HealthOptions(std::uint16_t port);

}  // namespace weft::http

#endif  // WEFT_LIB_HTTP_SERVER_H_
