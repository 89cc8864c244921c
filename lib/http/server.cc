// SPDX-License-Identifier: Apache-2.0
// The server on Boost.Beast: one acceptor, one Connection per client, each on a strand of its own, which
// owns itself until its peer goes, a limit is passed, or the server ends.
#include "lib/http/server.h"

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ssl = asio::ssl;
using Tcp = asio::ip::tcp;
using ErrorCodeAsio = boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using Parser = beast::http::request_parser<beast::http::string_body>;
using BeastRequest = beast::http::request<beast::http::string_body>;
using BeastResponse = beast::http::response<beast::http::string_body>;

Request Convert(BeastRequest& from) {
  const std::string target(from.target());
  const std::size_t question = target.find('?');
  return {.method = std::string(from.method_string()),
          .path = target.substr(0, question),
          .query = question == std::string::npos ? "" : target.substr(question + 1),
          .body = std::move(from.body())};
}

// A handler's exception is our own bug; the peer gets an answer and the others go on.
Response Handle(const Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const std::exception&) {
    return {.status = 500, .body = "internal error\n"};
  }
}

// Counts a connection while it lives.
class Place {
 public:
  explicit Place(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Place() { --count_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::atomic<int>& count_;
};

template <typename Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <typename... Args>
  Connection(const Handler& handler, std::atomic<int>& count, Args&&... args)
      : handler_(handler), place_(count), stream_(std::forward<Args>(args)...) {}

  // Keeps a TLS context as long as its connection.
  void Start(std::shared_ptr<ssl::context> context) {
    context_ = std::move(context);
    Limit();
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_handshake(ssl::stream_base::server,
                              [self = this->shared_from_this()](const ErrorCodeAsio& error) {
                                if (!error) self->Read();
                              });
    } else {
      Read();
    }
  }

 private:
  void Limit() { beast::get_lowest_layer(stream_).expires_after(kStepLimit); }

  void Read() {
    parser_ = std::make_unique<Parser>();
    parser_->body_limit(kMaxBodyBytes);
    parser_->header_limit(kMaxHeadBytes);
    Limit();
    beast::http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](const ErrorCodeAsio& error, std::size_t) {
          if (!error) self->Answer();
        });
  }

  void Answer() {
    BeastRequest request = parser_->release();
    const bool keep = request.keep_alive();
    const unsigned version = request.version();
    Response answer = Handle(handler_, Convert(request));
    response_ = BeastResponse(static_cast<beast::http::status>(answer.status), version);
    response_.set(beast::http::field::content_type, answer.content_type);
    response_.body() = std::move(answer.body);
    response_.keep_alive(keep);
    response_.prepare_payload();
    Limit();
    beast::http::async_write(
        stream_, response_,
        [self = this->shared_from_this(), keep](const ErrorCodeAsio& error, std::size_t) {
          if (error) return;
          if (keep) return self->Read();
          self->End();
        });
  }

  void End() {
    Limit();
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = this->shared_from_this()](const ErrorCodeAsio&) {});
    } else {
      ErrorCodeAsio ignored;
      stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    }
  }

  const Handler& handler_;
  const Place place_;
  std::shared_ptr<ssl::context> context_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::unique_ptr<Parser> parser_;  // one per request
  BeastResponse response_;
};

Error FromAsio(ErrorCode code, const ErrorCodeAsio& error, const std::string& what) {
  return {code, error.category() == boost::system::system_category() ? error.value() : 0,
          what + ": " + error.message()};
}

}  // namespace

class Server::Impl {
 public:
  Impl(Handler handler, bool tls) : handler_(std::move(handler)), tls_(tls) {}

  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Listen(const Options& options) {
    ErrorCodeAsio error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return std::unexpected(FromAsio(ErrorCode::kInvalid, error, options.address));
    Tcp::endpoint endpoint(address, options.port);
    Open(endpoint, error);
    if (error == asio::error::address_family_not_supported && options.address == "::") {
      endpoint = Tcp::endpoint(Tcp::v4(), options.port);  // a machine without IPv6
      Open(endpoint, error);
    }
    if (error)
      return std::unexpected(
          FromAsio(ErrorCode::kIo, error, "cannot listen on port " + std::to_string(options.port)));
    Accept();
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { io_.run(); });
    return {};
  }

  Status SetCertificate(const Certificate& certificate) {
    auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
    ErrorCodeAsio error;
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
    (void)context->use_certificate_chain(asio::buffer(certificate.chain_pem), error);
    if (error) return std::unexpected(FromAsio(ErrorCode::kInvalid, error, "certificate"));
    (void)context->use_private_key(asio::buffer(certificate.key_pem), ssl::context::pem, error);
    if (error) return std::unexpected(FromAsio(ErrorCode::kInvalid, error, "private key"));
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = std::move(context);
    return {};
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void Open(const Tcp::endpoint& endpoint, ErrorCodeAsio& error) {
    ErrorCodeAsio ignored;
    (void)acceptor_.close(ignored);
    if (acceptor_.open(endpoint.protocol(), error)) return;
    if (endpoint.address().is_v6()) (void)acceptor_.set_option(asio::ip::v6_only(false), ignored);
    (void)acceptor_.set_option(Tcp::acceptor::reuse_address(true), ignored);
    if (acceptor_.bind(endpoint, error)) return;
    if (acceptor_.listen(asio::socket_base::max_listen_connections, error)) return;
    port_ = acceptor_.local_endpoint(ignored).port();
  }

  void Accept() {
    acceptor_.async_accept(asio::make_strand(io_),
                           [this](const ErrorCodeAsio& error, Tcp::socket socket) {
                             if (!error) Serve(std::move(socket));
                             if (error == asio::error::operation_aborted) return;
                             if (!error) return Accept();
                             // No descriptors left, most likely: some will end meanwhile.
                             pause_.expires_after(kAcceptPause);
                             pause_.async_wait([this](const ErrorCodeAsio&) { Accept(); });
                           });
  }

  // Too many, or no certificate yet: the socket closes with its object.
  void Serve(Tcp::socket socket) {
    if (connections_ >= kMaxConnections) return;
    if (!tls_) {
      std::make_shared<Connection<PlainStream>>(handler_, connections_, std::move(socket))
          ->Start(nullptr);
      return;
    }
    std::shared_ptr<ssl::context> context;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      context = context_;
    }
    if (context == nullptr) return;
    std::make_shared<Connection<TlsStream>>(handler_, connections_, std::move(socket), *context)
        ->Start(context);
  }

  const Handler handler_;
  const bool tls_;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::shared_ptr<ssl::context> context_;
  std::uint16_t port_ = 0;
  // Behind what connections refer to: its end is theirs.
  asio::io_context io_{kThreads};
  Tcp::acceptor acceptor_{asio::make_strand(io_)};
  asio::steady_timer pause_{io_};
  std::vector<std::thread> threads_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(const Options& options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(handler), options.tls);
  WEFT_TRY(impl->Listen(options));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::SetCertificate(const Certificate& certificate) {
  return impl_->SetCertificate(certificate);
}

std::uint16_t Server::port() const { return impl_->port(); }

}  // namespace weft::http
