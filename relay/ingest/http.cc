// SPDX-License-Identifier: Apache-2.0
// See http.h.
#include "relay/ingest/http.h"

#include <charconv>

#include "lib/http/server.h"

namespace weft::ingest {
namespace {

http::Response Answer(const http::Request& request, const HttpServer::Answers& answers) {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .body = "GET and HEAD only\n"};
  }
  if (request.path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = answers.metrics()};
  }
  if (request.path != "/healthz")
    return {.status = 404, .body = "there is /metrics and /healthz\n"};
  if (!answers.healthy()) return {.status = 503, .body = "no progress\n"};
  return {.body = "ok\n"};
}

class RelayHttpServer : public HttpServer {
 public:
  RelayHttpServer(const std::string& host, std::unique_ptr<http::Server> server)
      : address_(host + ":" + std::to_string(server->port())), server_(std::move(server)) {}

  [[nodiscard]] std::string address() const override { return address_; }

 private:
  std::string address_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Answers answers) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const char* const digits = colon == std::string::npos ? end : address.data() + colon + 1;
  const auto [read, error] = std::from_chars(digits, end, port);
  if (error != std::errc() || read != end) {
    return Fail(ErrorCode::kInvalid, address + ": not ADDRESS:PORT");
  }
  http::Server::Options options = http::HealthOptions(port);
  options.address = host.starts_with('[') && host.ends_with(']') && host.size() > 2
                        ? host.substr(1, host.size() - 2)
                        : host;
  auto server = http::Server::Start(options, [answers = std::move(answers)](const auto& request) {
    return Answer(request, answers);
  });
  if (!server) return std::unexpected(std::move(server.error()).Context(address));
  return std::make_unique<RelayHttpServer>(host, std::move(*server));
}

}  // namespace weft::ingest
