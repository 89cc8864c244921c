// SPDX-License-Identifier: Apache-2.0
// See http.h. The one file with Beast's headers.
#include "relay/ingest/http.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <thread>

#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;
using Parser = http::request_parser<http::empty_body>;

Response Answer(const Request& request, const HttpServer::Answers& answers) {
  Response response{http::status::ok, request.version()};
  response.keep_alive(request.keep_alive());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.result(http::status::method_not_allowed);
    response.set(http::field::allow, "GET, HEAD");
  } else if (request.target() == "/metrics") {
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = answers.metrics();
  } else if (request.target() == "/healthz") {
    const bool healthy = answers.healthy();
    if (!healthy) response.result(http::status::service_unavailable);
    response.body() = healthy ? "ok\n" : "no progress\n";
  } else {
    response.result(http::status::not_found);
    response.body() = "there is /metrics and /healthz\n";
  }
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

// Lives in its handlers.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpServer::Answers& answers, size_t& count)
      : stream_(std::move(socket)), answers_(&answers), count_(&count) {
    (*count_)++;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { (*count_)--; }

  void Read() {
    parser_ = std::make_unique<Parser>();
    parser_->header_limit(kMaxHttpRequestBytes);
    parser_->body_limit(0);
    stream_.expires_after(kHttpTime);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, size_t) {
                       if (!error) self->Write();
                     });
  }

 private:
  void Write() {
    response_ = Answer(parser_->get(), *answers_);
    stream_.expires_after(kHttpTime);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, size_t) {
                        if (!error && self->response_.keep_alive()) self->Read();
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMaxHttpRequestBytes};
  std::unique_ptr<Parser> parser_;
  Response response_;
  const HttpServer::Answers* answers_;
  size_t* count_;
};

class BeastServer : public HttpServer {
 public:
  explicit BeastServer(Answers answers) : answers_(std::move(answers)) {}
  BeastServer(const BeastServer&) = delete;
  BeastServer& operator=(const BeastServer&) = delete;
  ~BeastServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status Start(const std::string& address) {
    const size_t colon = address.rfind(':');
    beast::error_code error;
    const std::string host = address.substr(0, colon);
    const auto ip = boost::asio::ip::make_address(
        host.starts_with('[') ? host.substr(1, host.size() - 2) : host, error);
    const unsigned long port =
        colon == std::string::npos ? 65536 : std::strtoul(address.c_str() + colon + 1, nullptr, 10);
    if (error || port > 65535) return Fail(ErrorCode::kInvalid, address + ": not ADDRESS:PORT");
    const tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
    (void)acceptor_.open(endpoint.protocol(), error);
    if (!error) (void)acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) (void)acceptor_.bind(endpoint, error);
    if (!error) (void)acceptor_.listen(kListenBacklog, error);
    if (error) {
      return std::unexpected(
          Error{ErrorCode::kIo, error.value(), address + ": " + error.message()});
    }
    const tcp::endpoint bound = acceptor_.local_endpoint();
    address_ = host + ":" + std::to_string(bound.port());
    Accept();
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  [[nodiscard]] std::string address() const override { return address_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == boost::asio::error::operation_aborted) return;
      if (error) {
        // Too many descriptors, mostly.
        timer_.expires_after(kBeat);
        timer_.async_wait([this](beast::error_code) { Accept(); });
        return;
      }
      if (count_ < kMaxHttpConnections) {
        std::make_shared<Connection>(std::move(socket), answers_, count_)->Read();
      }
      Accept();
    });
  }

  Answers answers_;
  size_t count_ = 0;  // outlives io_, whose handlers hold connections
  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  boost::asio::steady_timer timer_{io_};
  std::string address_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Answers answers) {
  auto server = std::make_unique<BeastServer>(std::move(answers));
  WEFT_TRY(server->Start(address));
  return server;
}

}  // namespace weft::ingest
