// SPDX-License-Identifier: Apache-2.0
// See server.h. The one file with Asio's headers.
#include "relay/ingest/server.h"

#include <netinet/tcp.h>
#include <sys/random.h>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "relay/ingest/deadline.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
constexpr auto kNoThrow = asio::experimental::as_tuple(asio::use_awaitable);

Result<tcp::endpoint> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Fail(ErrorCode::kInvalid, text + ": not ADDRESS:PORT");
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  const std::string digits = text.substr(colon + 1);
  const bool number = !digits.empty() && digits.size() <= 5 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long port = number ? std::stoul(digits) : 65536;
  if (error || port > 65535) return Fail(ErrorCode::kInvalid, text + ": not ADDRESS:PORT");
  return tcp::endpoint(address, static_cast<uint16_t>(port));
}

std::string Text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

Error FromAsio(const std::string& what, const std::error_code& error) {
  return {ErrorCode::kIo, error.value(), what + ": " + error.message()};
}

Result<tcp::acceptor> Listen(asio::io_context& io, const std::string& address) {
  WEFT_ASSIGN(const tcp::endpoint endpoint, ParseAddress(address));
  tcp::acceptor acceptor(io);
  std::error_code error;
  (void)acceptor.open(endpoint.protocol(), error);
  if (!error) (void)acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) (void)acceptor.bind(endpoint, error);
  if (!error) (void)acceptor.listen(kListenBacklog, error);
  if (error) return std::unexpected(FromAsio(address, error));
  return acceptor;
}

// Best effort: without it, a dead node's session stays longer.
void PrepareSocket(tcp::socket& socket) {
  std::error_code ignored;
  (void)socket.set_option(tcp::no_delay(true), ignored);
  (void)socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using Idle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  (void)socket.set_option(Idle(kKeepIdle), ignored);
  (void)socket.set_option(Interval(kKeepInterval), ignored);
  (void)socket.set_option(Count(kKeepCount), ignored);
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != ssize_t{sizeof(number)}) std::abort();
  return number;
}

// A node's session: its control connection, and its data connection once that came. Owned by the
// coroutines that read them; ends when either does.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(stream::Archive& archive, metrics::Registry& metrics, tcp::socket control)
      : receiver_(archive, RandomNumber(), stream::Receiver::Data::kInOrder),
        metrics_(&metrics),
        control_(std::move(control)),
        data_(control_.get_executor()) {
    metrics_->Add(metrics::Id::kRelaySessions, {});
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { metrics_->Add(metrics::Id::kRelaySessions, {}, -1); }

  [[nodiscard]] uint64_t number() const { return receiver_.session(); }

  // Takes the session's data connection, for ReadData. False: it has one, or wants none (yet).
  [[nodiscard]] bool TakeData(tcp::socket& socket) {
    if (closed_ || !receiver_.welcomed() || data_.is_open()) return false;
    data_ = std::move(socket);
    return true;
  }

  asio::awaitable<void> ReadControl(std::chrono::milliseconds hello_limit) {
    const auto self = shared_from_this();
    Deadline hello(control_.get_executor(), hello_limit, [this] {
      if (!receiver_.welcomed()) Close();
    });
    std::vector<uint8_t> buffer(kControlReadBytes);
    while (!closed_) {
      auto [error, n] = co_await control_.async_read_some(asio::buffer(buffer), kNoThrow);
      // Closed meanwhile: a read that was complete by then comes without an error all the same.
      if (error || closed_) break;
      Accept(receiver_.ReceiveControl(Bytes(buffer).first(n)));
      if (receiver_.welcomed()) hello.Lift();
    }
    Close();
  }

  asio::awaitable<void> ReadData(size_t header_size) {
    const auto self = shared_from_this();
    stream::PacketReader reader(header_size);
    while (!closed_) {
      const std::span<uint8_t> room = reader.Room();
      auto [error, n] =
          co_await data_.async_read_some(asio::buffer(room.data(), room.size()), kNoThrow);
      if (error || closed_) break;
      const auto complete = reader.Received(n);
      if (!complete) {
        Accept(std::unexpected(complete.error()));
      } else if (*complete) {
        Accept(receiver_.ReceivePacket(reader.header(), reader.packet()));
      }
    }
    Close();
  }

  // The archive has its traces back; what is to be said is sent before the connection ends.
  void Close() {
    if (closed_) return;
    closed_ = true;
    receiver_.Close();
    std::error_code ignored;
    if (data_.is_open()) (void)data_.close(ignored);
    Write();
  }

 private:
  void Accept(const Status& status) {
    if (closed_) return;
    receiver_.Flush();
    if (!status) {
      metrics_->Add(metrics::Id::kRelayRefusedSessions, {});
      const stream::Hello& who = receiver_.hello();
      std::fprintf(stderr, "weft-relay: session of %s for %s/%s ends: %s\n", who.node.c_str(),
                   who.kubernetes_namespace.c_str(), who.trace.c_str(),
                   status.error().message.c_str());
      receiver_.Refuse(status.error());
      Close();
    }
    Write();
  }

  // One write at a time.
  void Write() {
    if (!writing_.empty()) return;
    std::error_code ignored;
    if (receiver_.control_out().empty()) {
      // Shut down, not closed: the node reads what was sent, then the end.
      if (closed_ && control_.is_open()) {
        (void)control_.shutdown(tcp::socket::shutdown_both, ignored);
        (void)control_.close(ignored);
      }
      return;
    }
    writing_.swap(receiver_.control_out());
    const auto self = shared_from_this();
    asio::async_write(control_, asio::buffer(writing_), [self](std::error_code error, size_t) {
      self->writing_.clear();
      if (error) self->receiver_.control_out().clear();
      if (error) self->Close();
      self->Write();
    });
  }

  stream::Receiver receiver_;
  metrics::Registry* metrics_;
  tcp::socket control_;
  tcp::socket data_;
  std::string writing_;
  bool closed_ = false;
};

class AsioServer : public Server {
 public:
  AsioServer(stream::Archive& archive, metrics::Registry& metrics,
             std::chrono::milliseconds hello_limit)
      : archive_(&archive), metrics_(&metrics), hello_limit_(hello_limit) {}

  Status Listen(const std::string& control, const std::string& data) {
    WEFT_ASSIGN(control_, ingest::Listen(io_, control));
    WEFT_ASSIGN(data_, ingest::Listen(io_, data));
    return {};
  }

  Status Run() override {
    signals_.async_wait([this](std::error_code error, int) {
      if (!error) Drain();
    });
    asio::co_spawn(io_, AcceptControl(), asio::detached);
    asio::co_spawn(io_, AcceptData(), asio::detached);
    asio::co_spawn(io_, Beat(), asio::detached);
    io_.run();
    return synced_;
  }

  [[nodiscard]] std::string control_address() const override {
    return Text(control_.local_endpoint());
  }
  [[nodiscard]] std::string data_address() const override { return Text(data_.local_endpoint()); }
  [[nodiscard]] bool alive() const override { return Clock::now() - beat_.load() < kSilence; }

 private:
  asio::awaitable<void> AcceptControl() {
    for (;;) {
      auto [error, socket] = co_await control_.async_accept(kNoThrow);
      if (!control_.is_open()) co_return;
      if (error) {
        co_await Pause();
        continue;
      }
      std::erase_if(sessions_, [](const auto& entry) { return entry.second.expired(); });
      if (sessions_.size() >= kMaxSessions) continue;
      PrepareSocket(socket);
      auto session = std::make_shared<Session>(*archive_, *metrics_, std::move(socket));
      sessions_[session->number()] = session;
      asio::co_spawn(io_, session->ReadControl(hello_limit_), asio::detached);
    }
  }

  asio::awaitable<void> AcceptData() {
    for (;;) {
      auto [error, socket] = co_await data_.async_accept(kNoThrow);
      if (!data_.is_open()) co_return;
      if (error) {
        co_await Pause();
        continue;
      }
      if (strangers_ >= kMaxSessions) continue;
      PrepareSocket(socket);
      asio::co_spawn(io_, MeetData(std::move(socket)), asio::detached);
    }
  }

  // Too many descriptors, mostly: others may end meanwhile.
  asio::awaitable<void> Pause() {
    asio::steady_timer timer(io_, kBeat);
    co_await timer.async_wait(kNoThrow);
  }

  // A data connection says which session it belongs to.
  asio::awaitable<void> MeetData(tcp::socket socket) {
    strangers_++;
    stream::HelloBytes hello;
    Deadline limit(io_.get_executor(), hello_limit_, [&socket] {
      std::error_code ignored;
      (void)socket.close(ignored);
    });
    auto [error, n] = co_await asio::async_read(socket, asio::buffer(hello), kNoThrow);
    limit.Lift();
    strangers_--;
    if (error || !socket.is_open()) co_return;
    const auto said = stream::DecodeHello(hello);
    if (!said) co_return;
    const auto found = sessions_.find(said->session);
    const auto session = found == sessions_.end() ? nullptr : found->second.lock();
    if (session == nullptr || !session->TakeData(socket)) co_return;
    asio::co_spawn(io_, session->ReadData(said->header_size), asio::detached);
  }

  asio::awaitable<void> Beat() {
    asio::steady_timer timer(io_);
    while (control_.is_open()) {
      beat_.store(Clock::now());
      timer.expires_after(kBeat);
      co_await timer.async_wait(kNoThrow);
    }
  }

  void Drain() {
    std::error_code ignored;
    (void)control_.close(ignored);
    (void)data_.close(ignored);
    synced_ = archive_->Sync();
    for (auto& [number, weak] : sessions_) {
      if (const auto session = weak.lock()) session->Close();
    }
    drain_timer_.expires_after(kDrainTime);
    drain_timer_.async_wait([this](std::error_code) { io_.stop(); });
  }

  stream::Archive* archive_;
  metrics::Registry* metrics_;
  std::chrono::milliseconds hello_limit_;
  asio::io_context io_{1};
  tcp::acceptor control_{io_};
  tcp::acceptor data_{io_};
  asio::signal_set signals_{io_, SIGTERM, SIGINT};
  asio::steady_timer drain_timer_{io_};
  std::unordered_map<uint64_t, std::weak_ptr<Session>> sessions_;
  size_t strangers_ = 0;  // data connections that said nothing yet
  std::atomic<Clock::time_point> beat_{Clock::now()};
  Status synced_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Make(stream::Archive& archive, metrics::Registry& metrics,
                                             const std::string& control, const std::string& data,
                                             std::chrono::milliseconds hello_limit) {
  auto server = std::make_unique<AsioServer>(archive, metrics, hello_limit);
  WEFT_TRY(server->Listen(control, data));
  return server;
}

}  // namespace weft::ingest
