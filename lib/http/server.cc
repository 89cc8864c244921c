// SPDX-License-Identifier: Apache-2.0
// The server on Boost.Beast: one acceptor, one Connection per client, each on a strand of its own,
// which owns itself until its peer goes, a limit is passed, the budget closes it, or the server
// ends.
//
// Timers are those of beast::tcp_stream, which compare a counter of their own before they close
// anything: a limit that expires just as its operation ends does nothing.
#include "lib/http/server.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "lib/http/connection_budget.h"

namespace weft::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ssl = asio::ssl;
using Tcp = asio::ip::tcp;
using ErrorCodeAsio = boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::size_t kReadAtOnce = 4096;
// What is read and thrown away of a request that was refused, so that its peer reads the refusal.
constexpr std::size_t kLingerBytes = std::size_t{1} << 20;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using Parser = beast::http::request_parser<beast::http::string_body>;
using BeastRequest = beast::http::request<beast::http::string_body>;
using BeastResponse = beast::http::response<beast::http::string_body>;

std::map<std::string, std::string> Headers(const BeastRequest& from) {
  std::map<std::string, std::string> headers;
  for (const auto& field : from) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const auto [at, is_new] = headers.emplace(std::move(name), std::string(field.value()));
    if (!is_new) at->second += ", " + std::string(field.value());
  }
  return headers;
}

Request Convert(BeastRequest& from, const std::string& peer) {
  const std::string target(from.target());
  const std::size_t question = target.find('?');
  return {.peer = peer,
          .method = std::string(from.method_string()),
          .path = target.substr(0, question),
          .query = question == std::string::npos ? "" : target.substr(question + 1),
          .body = std::move(from.body()),
          .headers = Headers(from)};
}

// A handler's exception is our own bug; the peer gets an answer and the others go on.
Response Handle(const Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const std::exception&) {
    return {.status = 500, .body = "internal error\n"};
  }
}

Response Refusal(int status, std::string why) {
  return {.status = status, .body = std::move(why) + "\n"};
}

// What the connections of a server have in common; outlives them.
struct Shared {
  Shared(Handler handler, const Server::Options& options)
      : handler(std::move(handler)),
        options(options),
        budget(kMaxConnections, options.total_bytes) {}

  [[nodiscard]] bool IsUrgent(const Request& request) const {
    return !options.is_urgent || options.is_urgent(request.path);
  }

  void Report(const std::string& peer, const char* reason, std::string why) const {
    if (options.on_refused) options.on_refused({peer, reason, std::move(why)});
  }

  const Handler handler;
  const Server::Options options;
  ConnectionBudget budget;
  // Where requests that are not urgent are answered, one at a time. Goes before the server's
  // context.
  std::optional<asio::strand<asio::io_context::executor_type>> slow;
};

template <typename Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>>,
                   public ConnectionBudget::Guest {
 public:
  template <typename... Args>
  Connection(Shared& shared, std::string peer, Args&&... args)
      : shared_(shared), peer_(std::move(peer)), stream_(std::forward<Args>(args)...) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override { shared_.budget.Leave(*this); }

  // Keeps a TLS context as long as its connection.
  void Start(std::shared_ptr<ssl::context> context) {
    context_ = std::move(context);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      Limit(shared_.options.head_limit);
      stream_.async_handshake(ssl::stream_base::server, Then(&Connection::ReadHead));
    } else {
      ReadHead();
    }
  }

  std::function<void()> Evict() override {
    auto self = this->weak_from_this().lock();
    if (self == nullptr) return {};
    return [self = std::move(self)] {
      asio::post(self->stream_.get_executor(), [self] {
        self->is_evicted_ = true;
        beast::get_lowest_layer(self->stream_).close();
      });
    };
  }

 private:
  // A handler that goes on with `next`, where there was no error.
  auto Then(void (Connection::*next)()) {
    return [self = this->shared_from_this(), next](const ErrorCodeAsio& error, auto...) {
      if (error) return self->ReportEnd(error);
      ((*self).*next)();
    };
  }

  // A peer that only went away is not reported.
  void ReportEnd(const ErrorCodeAsio& failure) {
    using beast::http::error;
    if (lingers_) return;  // Refuse has reported it
    const auto say = [this](const char* reason, std::string why) {
      shared_.Report(peer_, reason, std::move(why));
    };
    if (is_evicted_)
      return say("limit",
                 "it gave way to others: the server holds too many connections, or bytes of "
                 "requests and answers");
    if (failure == beast::error::timeout && is_writing_)
      return say("slow", "it does not take its answer");
    if (failure == beast::error::timeout) return say("timeout", "no whole request in time");
    if (failure.category() == asio::error::get_ssl_category()) return say("tls", failure.message());
    if (failure == error::header_limit || failure == error::body_limit)
      return say("limit", failure.message());
    if (failure == error::end_of_stream || failure == error::partial_message) return;
    if (failure.category() == make_error_code(error::end_of_stream).category())
      say("protocol", failure.message());
  }

  void Limit(std::chrono::milliseconds limit) {
    beast::get_lowest_layer(stream_).expires_after(limit);
  }

  // The next request of a connection that is kept: idle until its first byte.
  void AwaitHead() {
    shared_.budget.Rest(*this, kConnectionBytes);
    if (buffer_.size() > 0) return ReadHead();
    Limit(kIdleLimit);
    stream_.async_read_some(
        buffer_.prepare(kReadAtOnce),
        [self = this->shared_from_this()](const ErrorCodeAsio& error, std::size_t bytes) {
          if (error) {
            if (self->is_evicted_) self->ReportEnd(error);
            return;
          }
          self->buffer_.commit(bytes);
          self->ReadHead();
        });
  }

  void ReadHead() {
    is_writing_ = false;
    parser_ = std::make_unique<Parser>();
    parser_->header_limit(kMaxHeadBytes);
    // Looked at in ReadBody, so that the peer is told.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    Limit(shared_.options.head_limit);
    beast::http::async_read_header(stream_, buffer_, *parser_, Then(&Connection::ReadBody));
  }

  void ReadBody() {
    const auto length = parser_->content_length();
    const std::size_t most = shared_.options.max_body_bytes;
    if (!parser_->chunked() && length.value_or(0) == 0) return Answer();
    if (most == 0) {
      return Refuse(413, "this port takes no requests with a body: leave the body out");
    }
    if (length.value_or(0) > most) {
      return Refuse(413, "the body has " + std::to_string(*length) + " bytes: at most " +
                             std::to_string(most) + " are taken");
    }
    if (!shared_.budget.Reserve(*this, parser_->chunked() ? most : *length)) {
      return Refuse(503, "too many bytes of other requests are being received: try again");
    }
    parser_->body_limit(most);
    Limit(kBodyLimit);
    beast::http::async_read(stream_, buffer_, *parser_, Then(&Connection::Answer));
  }

  void Answer() {
    BeastRequest request = parser_->release();
    keep_ = request.keep_alive();
    version_ = request.version();
    request_ = Convert(request, peer_);
    if (!shared_.slow || shared_.IsUrgent(request_)) return Write(Ask());
    asio::post(*shared_.slow, [self = this->shared_from_this()] {
      Response answer = self->Ask();
      asio::post(self->stream_.get_executor(),
                 [self, answer = std::move(answer)]() mutable { self->Write(std::move(answer)); });
    });
  }

  Response Ask() {
    if (!shared_.budget.BeginAnswer(*this)) return {};  // closed meanwhile: nothing is sent
    Response answer = Handle(shared_.handler, request_);
    shared_.budget.EndAnswer(*this);
    return answer;
  }

  void Refuse(int status, std::string why) {
    shared_.Report(peer_, "limit", why);
    keep_ = false;
    lingers_ = true;
    version_ = parser_->get().version();
    request_ = {};
    Write(Refusal(status, std::move(why)));
  }

  void Write(Response answer) {
    const bool head_only = request_.method == "HEAD";
    request_ = {};
    if (answer.source != nullptr && !answer.source->bytes() && version_ < 11) {
      answer = Refusal(505, "this answer has no length: ask with HTTP/1.1");
    }
    parser_.reset();
    shared_.budget.Rest(*this, kConnectionBytes);
    const std::size_t holds =
        answer.source != nullptr && !head_only ? kBlockBytes : answer.body.size();
    if (!shared_.budget.Reserve(*this, holds)) {
      answer = Refusal(503, "too many bytes of other answers are being sent: try again");
    }
    response_ = BeastResponse(static_cast<beast::http::status>(answer.status), version_);
    for (const auto& [name, value] : answer.headers) response_.set(name, value);
    response_.set(beast::http::field::content_type, answer.content_type);
    response_.body() = std::move(answer.body);
    response_.keep_alive(keep_);
    response_.prepare_payload();
    bool is_chunked = false;
    if (answer.source != nullptr) {
      const auto bytes = answer.source->bytes();
      is_chunked = !bytes;
      if (bytes) response_.content_length(*bytes);
      if (is_chunked) response_.chunked(true);
      if (!head_only) source_ = std::move(answer.source);
    }
    if (head_only) response_.body().clear();
    is_writing_ = true;
    Limit(kBodyLimit);
    const auto next = Then(source_ == nullptr ? &Connection::Written : &Connection::BeginStream);
    if (!is_chunked) return beast::http::async_write(stream_, response_, next);
    // Beast would send the last chunk behind the head.
    serializer_.emplace(response_);
    beast::http::async_write_header(stream_, *serializer_, next);
  }

  // The head of a streamed body was sent.
  void BeginStream() {
    serializer_.reset();
    response_ = {};
    left_ = source_->bytes();
    block_.resize(kBlockBytes);
    WriteBlock();
  }

  void WriteBlock() {
    if (left_ == 0) {
      source_.reset();
      block_ = {};
      return Written();
    }
    const std::size_t most = std::min<std::uint64_t>(left_.value_or(block_.size()), block_.size());
    const auto got = source_->Read({block_.data(), most});
    // The connection goes with its last reference.
    if (!got || (*got == 0 && left_) || *got > most) return;
    // The connection that has waited longest for its peer is closed first.
    shared_.budget.Rest(*this, kConnectionBytes + kBlockBytes);
    Limit(kBodyLimit);
    const asio::const_buffer bytes(block_.data(), *got);
    if (left_) {
      *left_ -= *got;
      asio::async_write(stream_, bytes, Then(&Connection::WriteBlock));
    } else if (*got > 0) {
      asio::async_write(stream_, beast::http::make_chunk(bytes), Then(&Connection::WriteBlock));
    } else {
      left_ = 0;
      asio::async_write(stream_, beast::http::make_chunk_last(), Then(&Connection::WriteBlock));
    }
  }

  void Written() {
    serializer_.reset();
    response_ = {};
    if (keep_) return AwaitHead();
    Limit(kLingerLimit);
    if constexpr (std::is_same_v<Stream, PlainStream>) {
      End();
      if (lingers_) Linger();
    } else {
      if (lingers_) return Linger();
      End();
    }
  }

  void End() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = this->shared_from_this()](const ErrorCodeAsio&) {});
    } else {
      ErrorCodeAsio ignored;
      stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    }
  }

  // Closing a socket with bytes that were not read would reset the connection, and the peer would
  // perhaps never see the refusal.
  void Linger() {
    buffer_.consume(buffer_.size());
    stream_.async_read_some(
        buffer_.prepare(kReadAtOnce),
        [self = this->shared_from_this()](const ErrorCodeAsio& error, std::size_t bytes) {
          self->lingered_ += bytes;
          if (!error && self->lingered_ < kLingerBytes) self->Linger();
        });
  }

  Shared& shared_;
  const std::string peer_;  // its address
  std::shared_ptr<ssl::context> context_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxHeadBytes + kReadAtOnce};
  std::unique_ptr<Parser> parser_;  // one per request
  Request request_;
  unsigned version_ = 11;
  bool keep_ = false;  // the connection, after this request
  bool is_evicted_ = false;
  bool is_writing_ = false;
  bool lingers_ = false;  // the request was refused before all of it was read
  std::size_t lingered_ = 0;
  BeastResponse response_;
  std::optional<beast::http::response_serializer<beast::http::string_body>> serializer_;  // of it
  std::shared_ptr<BodySource> source_;  // null: the body is in response_
  std::vector<char> block_;
  std::optional<std::uint64_t> left_;  // of the source's body; none: it is sent in chunks
};

Error FromAsio(ErrorCode code, const ErrorCodeAsio& error, const std::string& what) {
  return {code, error.category() == boost::system::system_category() ? error.value() : 0,
          what + ": " + error.message()};
}

}  // namespace

class Server::Impl {
 public:
  Impl(Handler handler, const Options& options) : shared_(std::move(handler), options) {
    shared_.slow.emplace(asio::make_strand(io_));
  }

  ~Impl() {
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    shared_.slow.reset();
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
    for (int i = 0; i < shared_.options.threads; ++i) threads_.emplace_back([this] { io_.run(); });
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

  // No certificate yet, or nothing can give way: the socket closes with its object.
  void Serve(Tcp::socket socket) {
    ErrorCodeAsio error;
    const std::string peer = socket.remote_endpoint(error).address().to_string();
    if (error) return;  // gone already
    if (!shared_.options.tls) {
      Admit(std::make_shared<Connection<PlainStream>>(shared_, peer, std::move(socket)), peer,
            nullptr);
      return;
    }
    std::shared_ptr<ssl::context> context;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      context = context_;
    }
    if (context == nullptr) {
      return shared_.Report(peer, "no_certificate", "this server has no certificate yet");
    }
    Admit(std::make_shared<Connection<TlsStream>>(shared_, peer, std::move(socket), *context), peer,
          context);
  }

  template <typename Stream>
  void Admit(const std::shared_ptr<Connection<Stream>>& connection, const std::string& peer,
             std::shared_ptr<ssl::context> context) {
    if (shared_.budget.Admit(*connection, peer, kConnectionBytes)) {
      return connection->Start(std::move(context));
    }
    shared_.Report(peer, "limit", "too many connections, all of which are being answered");
  }

  std::mutex mutex_;
  std::shared_ptr<ssl::context> context_;
  std::uint16_t port_ = 0;
  Shared shared_;
  // Behind what connections refer to: its end is theirs.
  asio::io_context io_;
  Tcp::acceptor acceptor_{asio::make_strand(io_)};
  asio::steady_timer pause_{io_};
  std::vector<std::thread> threads_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(const Options& options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(handler), options);
  WEFT_TRY(impl->Listen(options));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::SetCertificate(const Certificate& certificate) {
  return impl_->SetCertificate(certificate);
}

Server::Options HealthOptions(std::uint16_t port) {
  return {.port = port,
          .max_body_bytes = 0,
          .total_bytes = kHealthBytes,
          .is_urgent = [](const std::string& path) { return path != "/metrics"; }};
}

std::uint16_t Server::port() const { return impl_->port(); }

}  // namespace weft::http
