// SPDX-License-Identifier: Apache-2.0
// See peer.h.
#include "relay/ingest/peer.h"

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>

namespace weft::ingest {
namespace {

using asio::ip::tcp;
constexpr auto kNoThrow = asio::experimental::as_tuple(asio::use_awaitable);

std::string AddressOf(const tcp::socket& socket) {
  std::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "" : endpoint.address().to_string();
}

}  // namespace

Peer::Peer(tcp::socket socket, std::optional<tls::Engine> tls, Scratch& scratch,
           http::ConnectionBudget& budget)
    : socket_(std::move(socket)),
      tls_(std::move(tls)),
      scratch_(scratch),
      budget_(budget),
      address_(AddressOf(socket_)) {
  std::error_code ignored;
  (void)socket_.non_blocking(true, ignored);
}

Peer::~Peer() { budget_.Leave(*this); }

std::function<void()> Peer::Evict() {
  auto self = weak_from_this().lock();
  if (self == nullptr) return {};
  return [self = std::move(self)] {
    self->evicted_ = true;
    self->CloseSocket();
  };
}

asio::awaitable<Result<size_t>> Peer::Read(std::span<uint8_t> room) {
  const auto self = shared_from_this();
  while (socket_.is_open()) {
    if (tls_) {
      auto plain = tls_->Read(room);
      // The peer may have asked for new keys, and not read the answers.
      Send();
      if (tls_->out().size() > kMaxBacklog) co_return Fail(ErrorCode::kLimit, "it does not read");
      if (!plain || *plain > 0) co_return plain;
    }
    // A peer that sends without a pause does not keep others from their turn.
    if (spent_ >= kTurnBytes) {
      spent_ = 0;
      co_await asio::post(socket_.get_executor(), asio::use_awaitable);
      if (!socket_.is_open()) break;
    }
    const std::span<uint8_t> to = tls_ ? std::span<uint8_t>(scratch_.cipher) : room;
    std::error_code error;
    const size_t n = socket_.receive(asio::buffer(to.data(), to.size()), 0, error);
    if (error == asio::error::would_block) {
      spent_ = 0;
      (void)co_await socket_.async_wait(tcp::socket::wait_read, kNoThrow);
      continue;
    }
    if (error || closing_) break;
    spent_ += n + kReadCost;
    if (!tls_) co_return n;
    const Status received = tls_->Receive(Bytes(scratch_.cipher).first(n));
    Send();
    if (!received) co_return std::unexpected(received.error());
  }
  if (evicted_) {
    co_return Fail(ErrorCode::kLimit,
                   "too many connections without a session: this one waited longest");
  }
  co_return Fail(ErrorCode::kClosed, "the node closed the connection");
}

void Peer::Write(std::string bytes) {
  if (closing_) return;
  waiting_ += bytes;
  Send();
}

// One write at a time.
void Peer::Send() {
  if (!writing_.empty() || !socket_.is_open()) return;
  if (!tls_) {
    writing_.swap(waiting_);
  } else {
    if (tls_->established() && !waiting_.empty()) {
      const Bytes plain(reinterpret_cast<const uint8_t*>(waiting_.data()), waiting_.size());
      const Status written = tls_->Write(plain);
      waiting_.clear();
      if (!written) return CloseSocket();
    }
    const Bytes out = tls_->out();
    writing_.assign(out.begin(), out.end());
    tls_->Sent(out.size());
  }
  if (writing_.empty()) {
    if (closing_) CloseSocket();
    return;
  }
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](std::error_code error, size_t) {
                      self->writing_.clear();
                      if (error) return self->CloseSocket();
                      self->Send();
                    });
}

void Peer::Close() {
  if (closing_ || !socket_.is_open()) return;
  closing_ = true;
  std::error_code ignored;
  // Wakes a Read.
  (void)socket_.shutdown(tcp::socket::shutdown_receive, ignored);
  auto timer = std::make_shared<asio::steady_timer>(socket_.get_executor(), kLastWordsTime);
  timer->async_wait([weak = weak_from_this(), timer](std::error_code) {
    if (const auto self = weak.lock()) self->CloseSocket();
  });
  Send();
}

void Peer::CloseSocket() {
  if (!socket_.is_open()) return;
  std::error_code ignored;
  // Shut down, not closed only: the node reads what was sent, then the end.
  (void)socket_.shutdown(tcp::socket::shutdown_both, ignored);
  (void)socket_.close(ignored);
}

}  // namespace weft::ingest
