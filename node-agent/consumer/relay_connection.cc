// SPDX-License-Identifier: Apache-2.0
// See relay_connection.h. sendmsg and recvmsg: the sandbox has no other calls for sockets.
#include "node-agent/consumer/relay_connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

iovec Part(Bytes bytes) { return {const_cast<uint8_t*>(bytes.data()), bytes.size()}; }

// Returns how many bytes of both it sent; 0: the socket is full.
Result<size_t> SendTo(int socket, Bytes front, Bytes rest) {
  iovec parts[2] = {Part(front), Part(rest)};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return FailErrno("connection");
  }
}

// Returns how many bytes arrived; 0: none now.
Result<size_t> ReceiveFrom(int socket, std::span<uint8_t> room) {
  iovec part{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  for (;;) {
    const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return Fail(ErrorCode::kClosed, "connection: closed by the relay");
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return FailErrno("connection");
  }
}

}  // namespace

Status RelayConnection::Open(UniqueFd socket, const RelayTrust& trust) {
  Close();
  if (!trust.authorities.empty()) {
    WEFT_ASSIGN(const auto context, tls::ClientContext::Make(trust.authorities));
    WEFT_ASSIGN(tls_, tls::Engine::Connect(context, trust.server_name));
  }
  socket_ = std::move(socket);
  return Flush();
}

void RelayConnection::Close() {
  // The relay learns why, if it was the handshake that failed.
  if (socket_ && tls_) (void)Flush();
  tls_.reset();
  socket_.reset();
}

Result<size_t> RelayConnection::ReceiveCipher(tls::Engine& tls) {
  cipher_.resize(kRelayReadBytes);
  WEFT_ASSIGN(const size_t n, ReceiveFrom(socket_.get(), cipher_));
  WEFT_TRY(tls.Receive(Bytes(cipher_).first(n)));
  WEFT_TRY(Flush());
  return n;
}

Result<size_t> RelayConnection::Receive(std::span<uint8_t> room) {
  if (!tls_) return ReceiveFrom(socket_.get(), room);
  for (;;) {
    WEFT_ASSIGN(const size_t plain, tls_->Read(room));
    if (plain > 0) return plain;
    WEFT_ASSIGN(const size_t n, ReceiveCipher(*tls_));
    if (n == 0) return size_t{0};
  }
}

Result<size_t> RelayConnection::Send(Bytes front, Bytes rest) {
  if (!tls_) return SendTo(socket_.get(), front, rest);
  WEFT_TRY(Flush());
  if (!tls_->established() || !tls_->out().empty()) return size_t{0};
  front = front.first(std::min(front.size(), kTlsBytes));
  rest = rest.first(std::min(rest.size(), kTlsBytes - front.size()));
  WEFT_TRY(tls_->Write(front));
  WEFT_TRY(tls_->Write(rest));
  WEFT_TRY(Flush());
  return front.size() + rest.size();
}

Status RelayConnection::Flush() {
  while (tls_ && !tls_->out().empty()) {
    WEFT_ASSIGN(const size_t n, SendTo(socket_.get(), tls_->out(), {}));
    if (n == 0) break;
    tls_->Sent(n);
  }
  return {};
}

pollfd RelayConnection::Poll(bool has_bytes) const {
  const bool out = tls_ ? !tls_->out().empty() || (has_bytes && tls_->established()) : has_bytes;
  return {socket_.get(), static_cast<short>(POLLIN | (out ? POLLOUT : 0)), 0};
}

}  // namespace weft::consumer
