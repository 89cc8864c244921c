// SPDX-License-Identifier: Apache-2.0
// HTTP to an API server: the one boundary to cpprestsdk, whose headers are in transport.cc only.
// That file is C++20 (clang does not accept cpprestsdk as C++23), so this header uses nothing
// newer.
// No exception leaves a Transport. A call blocks its thread; several threads may call at the same
// time. A transport outlives its calls.
#ifndef WEFT_LIB_KUBE_TRANSPORT_H_
#define WEFT_LIB_KUBE_TRANSPORT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::kube {

using Headers = std::vector<std::pair<std::string, std::string>>;

// What a client proves its identity with, beside the files of TransportConfig. "": not used.
struct Credentials {
  std::string token;
  std::string certificate;  // PEM, with the certificates above it
  std::string key;          // PEM
  std::string problem;      // why there are none; the request fails with it
};

// Files are read again when they change (certificates) or for each request (the token, which the
// kubelet replaces every hour). "": not used.
struct TransportConfig {
  std::string server;  // https://host:port; http:// is for tests
  std::string ca_file;
  std::string token_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string ca;                  // PEM; trusted beside those of ca_file
  bool trusts_any_server = false;  // the server's certificate is not verified
  std::string server_name;         // expected in the server's certificate; "": the server's host
  std::string proxy;               // http://host:port
  Headers headers;                 // of each request
  // Called before each request, by any thread, so that credentials may be renewed; null: none.
  std::function<Credentials()> credentials;
};

// A request's answer comes within seconds or not at all.
inline constexpr std::chrono::seconds kAnswerIdleLimit{30};

struct HttpRequest {
  std::string method;  // GET, POST, PUT, PATCH, DELETE
  std::string target;  // path and query, encoded
  std::string content_type;
  std::string body;
  Headers headers;  // instead of `Accept: application/json` if they have an Accept
  std::chrono::seconds answer_limit = kAnswerIdleLimit;  // without a byte; of Transport::Send
};

enum class TransportFailure {
  kNone,
  kConfig,      // a certificate cannot be read, a URL is wrong
  kTimeout,     // nothing came for so long
  kConnection,  // cannot connect, no trust, connection lost
  kCancelled,   // by the caller's stop token or by on_bytes
  kTooLarge,    // more than kMaxAnswerBytes
};

struct HttpReply {
  int status = 0;  // 0: there was no answer
  std::string body;
  TransportFailure failure = TransportFailure::kNone;
  std::string problem;  // one line, when failure is not kNone
  // The answer's Date, by the server's clock, in whole seconds. Nothing: it has none.
  std::optional<std::chrono::system_clock::time_point> date;
};

// Takes a part of the body; false ends the stream.
using BytesHandler = std::function<bool(std::string_view)>;

class Transport {
 public:
  virtual ~Transport() = default;

  // The whole answer.
  virtual HttpReply Send(const HttpRequest& request, const std::stop_token& stop) = 0;

  // The body of an answer with status 200 goes to `on_bytes` as it comes, on this thread; of
  // another one it is in the reply.
  virtual HttpReply Stream(const HttpRequest& request, const std::stop_token& stop,
                           const BytesHandler& on_bytes) = 0;
};

// Limits, with reasons.
// cpprestsdk's own threads: they only move bytes. Without this it starts 40.
inline constexpr int kTransportThreads = 2;
// A watch ends after kWatchSeconds (client.h) by itself and has bookmarks about every minute.
inline constexpr std::chrono::seconds kStreamIdleLimit{75};
// A page of 500 objects, each at most etcd's 1.5 MiB, is far below in practice; this bounds memory.
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{64} << 20;

std::unique_ptr<Transport> MakeTransport(const TransportConfig& config);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_TRANSPORT_H_
