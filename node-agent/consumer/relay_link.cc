// SPDX-License-Identifier: Apache-2.0
// See relay_link.h. sendmsg and recvmsg: the sandbox has no other calls for sockets.
#include "node-agent/consumer/relay_link.h"

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

}  // namespace

bool RelayLink::Pump(uint64_t now_ns) {
  if (problem_since_ns_ == 0) problem_since_ns_ = now_ns;
  if (phase_ == Phase::kDown) {
    if (now_ns >= retry_ns_) Connect(now_ns);
    return false;
  }
  if (phase_ == Phase::kAsked) {
    if (now_ns - since_ns_ >= kConnectTime) Drop("no agent to connect to it", now_ns);
    return false;
  }
  auto received = Receive();
  Status status = received ? Status() : std::unexpected(received.error());
  if (status && sender_.wants_data() && !data_asked_) {
    data_asked_ = hooks_.ask(true).has_value();
  }
  if (status && now_ns - beacon_ns_ >= kBeaconInterval) {
    sender_.SendBeacons();
    beacon_ns_ = now_ns;
  }
  if (status) status = SendData();
  if (status) status = SendControl();
  if (status && !data_ && now_ns - since_ns_ >= kConnectTime) {
    status = Fail(ErrorCode::kTimeout, "no answer");
  }
  if (!status) Drop(status.error().message, now_ns);
  return status && *received;
}

void RelayLink::Connect(uint64_t now_ns) {
  phase_ = Phase::kAsked;
  since_ns_ = now_ns;
  if (!hooks_.ask(false)) {
    phase_ = Phase::kDown;
    retry_ns_ = now_ns + kMinRetry;
  }
}

void RelayLink::NewAgent() {
  if (phase_ == Phase::kAsked) phase_ = Phase::kDown;
  if (data_asked_ && !data_) data_asked_ = false;
}

void RelayLink::Answer(bool data, UniqueFd socket, const std::string& error, uint64_t now_ns) {
  if (data ? phase_ != Phase::kUp || data_ : phase_ != Phase::kAsked) return;
  if (!socket) return Drop(error, now_ns);
  if (data) {
    data_ = std::move(socket);
    sender_.DataConnected();
    problem_.clear();
    backoff_ns_ = 0;
    return;
  }
  control_ = std::move(socket);
  phase_ = Phase::kUp;
  since_ns_ = now_ns;
  sender_.Connected();
}

void RelayLink::Drop(const std::string& why, uint64_t now_ns) {
  // One notice an outage: the tries after it fail for the same reason, mostly.
  if (problem_.empty() || backoff_ns_ == 0) {
    problem_since_ns_ = now_ns;
    hooks_.notice(name_ + ": " + why + "; trying again, events wait in their buffers");
  }
  problem_ = name_ + ": " + why;
  control_.reset();
  data_.reset();
  data_asked_ = data_blocked_ = false;
  sender_.Disconnected();
  phase_ = Phase::kDown;
  backoff_ns_ = std::clamp(backoff_ns_ * 2, kMinRetry, kMaxRetry);
  retry_ns_ = now_ns + backoff_ns_;
}

Result<bool> RelayLink::Receive() {
  buffer_.resize(kRelayReadBytes);
  iovec part{buffer_.data(), buffer_.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  bool any = false;
  for (;;) {
    const ssize_t n = ::recvmsg(control_.get(), &message, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return any;
    if (n < 0) return FailErrno("connection");
    if (n == 0) return Fail(ErrorCode::kClosed, "connection: closed by the relay");
    any = true;
    WEFT_TRY(sender_.ReceiveControl(Bytes(buffer_).first(static_cast<size_t>(n))));
    if (static_cast<size_t>(n) < buffer_.size()) return any;
  }
}

Status RelayLink::SendControl() {
  std::string& out = sender_.control_out();
  while (!out.empty()) {
    WEFT_ASSIGN(
        const size_t n,
        SendTo(control_.get(), {reinterpret_cast<const uint8_t*>(out.data()), out.size()}, {}));
    if (n == 0) break;
    out.erase(0, n);
  }
  return {};
}

Status RelayLink::SendData() {
  data_blocked_ = false;
  if (!data_) return {};
  for (uint64_t sent = 0; sent < kBytesPerRound;) {
    const stream::Sender::Out out = sender_.NextData();
    if (out.front.empty() && out.packet.empty()) return {};
    WEFT_ASSIGN(const size_t n, SendTo(data_.get(), out.front, out.packet));
    data_blocked_ = n == 0;
    if (data_blocked_) return {};
    sender_.DataSent(n);
    sent += n;
  }
  return {};
}

void RelayLink::AddPolls(std::vector<pollfd>& polls) {
  if (!control_) return;
  const bool control_out = !sender_.control_out().empty();
  polls.push_back({control_.get(), static_cast<short>(POLLIN | (control_out ? POLLOUT : 0)), 0});
  // The relay says nothing there: its end is seen on both.
  if (data_ && data_blocked_) polls.push_back({data_.get(), POLLOUT, 0});
}

}  // namespace weft::consumer
