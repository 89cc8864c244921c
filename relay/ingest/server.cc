// SPDX-License-Identifier: Apache-2.0
// See server.h. Asio's headers are here, and in peer.h, session.h and deadline.h.
#include "relay/ingest/server.h"

#include <netinet/tcp.h>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <unordered_map>

#include "lib/http/connection_budget.h"
#include "lib/stream/packet.h"
#include "relay/ingest/deadline.h"
#include "relay/ingest/limits.h"
#include "relay/ingest/peer.h"
#include "relay/ingest/refusals.h"
#include "relay/ingest/session.h"
#include "relay/ingest/stream_shares.h"

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

class AsioServer : public Server {
 public:
  AsioServer(stream::Archive& archive, metrics::Registry& metrics, const relay_trust::Gate* gate,
             std::chrono::milliseconds hello_limit)
      : refusals_(metrics),
        context_{.archive = archive,
                 .metrics = metrics,
                 .refusals = refusals_,
                 .scratch = scratch_,
                 .shares = shares_,
                 .gate = gate},
        hello_limit_(hello_limit) {}

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
    if (context_.gate != nullptr) asio::co_spawn(io_, EndOrphans(), asio::detached);
    io_.run();
    return synced_;
  }

  [[nodiscard]] std::string control_address() const override {
    return Text(control_.local_endpoint());
  }
  [[nodiscard]] std::string data_address() const override { return Text(data_.local_endpoint()); }
  [[nodiscard]] bool alive() const override { return Clock::now() - beat_.load() < kSilence; }

 private:
  // The connection with its TLS; null: it cannot be served now.
  std::shared_ptr<Peer> Meet(tcp::socket socket) {
    PrepareSocket(socket);
    std::optional<tls::Engine> tls;
    std::string why_not;
    if (context_.gate != nullptr) {
      const auto certificate = context_.gate->certificate();
      auto engine = certificate ? tls::Engine::Accept(*certificate)
                                : Fail(ErrorCode::kNotFound, "the relay has no certificate yet");
      if (engine) tls.emplace(std::move(*engine));
      if (!engine) why_not = engine.error().message;
    }
    auto peer = std::make_shared<Peer>(std::move(socket), std::move(tls), scratch_, strangers_);
    if (!why_not.empty()) {
      refusals_.Note("no_certificate", "from " + peer->address(), why_not);
      return nullptr;
    }
    if (strangers_.Admit(*peer, peer->address(), kStrangerBytes)) return peer;
    refusals_.Note("limit", "from " + peer->address(), "too many connections without a session");
    return nullptr;
  }

  asio::awaitable<void> AcceptControl() {
    for (;;) {
      auto [error, socket] = co_await control_.async_accept(kNoThrow);
      if (!control_.is_open()) co_return;
      if (error) {
        co_await Pause();
        continue;
      }
      auto peer = Meet(std::move(socket));
      if (peer == nullptr) continue;
      auto session = std::make_shared<Session>(
          context_, peer, [this, peer](Session& welcomed) { return Enter(welcomed, *peer); });
      asio::co_spawn(io_, session->ReadControl(hello_limit_), asio::detached);
    }
  }

  // A welcomed session takes its place among the others.
  Status Enter(Session& session, Peer& peer) {
    std::erase_if(sessions_, [](const auto& entry) { return entry.second.expired(); });
    const stream::Hello& hello = session.hello();
    size_t all = 0;
    size_t of_namespace = 0;
    for (const auto& [number, weak] : sessions_) {
      const auto other = weak.lock();
      if (other == nullptr || other->is_closed()) continue;
      // The node's consumer has one for each Trace: what is left of an earlier one is over.
      if (context_.gate != nullptr && IsSameSession(other->hello(), hello)) {
        other->Close();
        continue;
      }
      all++;
      of_namespace += other->hello().kubernetes_namespace == hello.kubernetes_namespace ? 1 : 0;
    }
    // In local mode, all sessions are of one user.
    if (context_.gate == nullptr) of_namespace = 0;
    WEFT_TRY(CheckSessionShare(hello.kubernetes_namespace, of_namespace, all));
    strangers_.Leave(peer);
    sessions_[session.number()] = session.weak_from_this();
    return {};
  }

  static bool IsSameSession(const stream::Hello& a, const stream::Hello& b) {
    return a.node == b.node && a.kubernetes_namespace == b.kubernetes_namespace &&
           a.trace == b.trace && a.trace_uid == b.trace_uid;
  }

  asio::awaitable<void> AcceptData() {
    for (;;) {
      auto [error, socket] = co_await data_.async_accept(kNoThrow);
      if (!data_.is_open()) co_return;
      if (error) {
        co_await Pause();
        continue;
      }
      if (auto peer = Meet(std::move(socket))) {
        asio::co_spawn(io_, MeetData(std::move(peer)), asio::detached);
      }
    }
  }

  // Too many descriptors, mostly: others may end meanwhile.
  asio::awaitable<void> Pause() {
    asio::steady_timer timer(io_, kBeat);
    co_await timer.async_wait(kNoThrow);
  }

  // A data connection says which session it belongs to.
  asio::awaitable<void> MeetData(std::shared_ptr<Peer> peer) {
    stream::HelloBytes hello;
    Deadline limit(io_.get_executor(), hello_limit_, [this, peer] {
      refusals_.Note("timeout", "data connection from " + peer->address(), "no hello");
      peer->Close();
    });
    for (size_t at = 0; at < hello.size();) {
      const auto n = co_await peer->Read(std::span<uint8_t>(hello).subspan(at));
      if (!n) {
        NoteReadError(refusals_, "data connection from " + peer->address(), n.error());
        co_return peer->Close();
      }
      at += *n;
    }
    limit.Lift();
    strangers_.Leave(*peer);
    const auto said = stream::DecodeHello(hello);
    const auto found = said ? sessions_.find(said->session) : sessions_.end();
    const auto session = found == sessions_.end() ? nullptr : found->second.lock();
    if (session == nullptr || !session->TakeData(peer)) {
      refusals_.Note("protocol", "data connection from " + peer->address(),
                     said ? "it names no session that waits for it" : said.error().message);
      co_return peer->Close();
    }
    asio::co_spawn(io_, session->ReadData(said->header_size), asio::detached);
  }

  asio::awaitable<void> Beat() {
    asio::steady_timer timer(io_);
    Clock::time_point ticked;
    while (control_.is_open()) {
      beat_.store(Clock::now());
      if (Clock::now() - ticked >= kTick) {
        context_.archive.Tick();
        ticked = Clock::now();
      }
      timer.expires_after(kBeat);
      co_await timer.async_wait(kNoThrow);
    }
  }

  // Ends sessions whose TraceSession has been gone for so long that nothing is left to be sent.
  asio::awaitable<void> EndOrphans() {
    asio::steady_timer timer(io_);
    while (control_.is_open()) {
      timer.expires_after(kOrphanLook);
      co_await timer.async_wait(kNoThrow);
      for (const auto& [number, weak] : sessions_) {
        const auto session = weak.lock();
        if (session == nullptr || !context_.gate->IsOver(session->hello())) continue;
        session->Refuse("no_session", {ErrorCode::kPermission, 0, "its TraceSession was deleted"});
      }
    }
  }

  void Drain() {
    std::error_code ignored;
    (void)control_.close(ignored);
    (void)data_.close(ignored);
    synced_ = context_.archive.Sync();
    for (auto& [number, weak] : sessions_) {
      if (const auto session = weak.lock()) session->Close();
    }
    drain_timer_.expires_after(kDrainTime);
    drain_timer_.async_wait([this](std::error_code) { io_.stop(); });
  }

  Scratch scratch_;
  StreamShares shares_{FileLimit()};
  Refusals refusals_;
  http::ConnectionBudget strangers_{kMaxStrangers, kMaxStrangers* kStrangerBytes};
  SessionContext context_;
  std::chrono::milliseconds hello_limit_;
  asio::io_context io_{1};
  tcp::acceptor control_{io_};
  tcp::acceptor data_{io_};
  asio::signal_set signals_{io_, SIGTERM, SIGINT};
  asio::steady_timer drain_timer_{io_};
  std::unordered_map<uint64_t, std::weak_ptr<Session>> sessions_;  // that were welcomed
  std::atomic<Clock::time_point> beat_{Clock::now()};
  Status synced_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Make(stream::Archive& archive, metrics::Registry& metrics,
                                             const Options& options) {
  auto server = std::make_unique<AsioServer>(archive, metrics, options.gate, options.hello_limit);
  WEFT_TRY(server->Listen(options.control, options.data));
  return server;
}

}  // namespace weft::ingest
