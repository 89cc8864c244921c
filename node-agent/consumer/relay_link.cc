// SPDX-License-Identifier: Apache-2.0
// See relay_link.h.
#include "node-agent/consumer/relay_link.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {
namespace {

// A relay that has too many connections closes some; one that is overloaded answers late.
bool MayBeBusy(const Error& error) {
  return error.code == ErrorCode::kClosed || error.code == ErrorCode::kTimeout ||
         error.sys_errno == ECONNRESET || error.sys_errno == EPIPE || error.sys_errno == ETIMEDOUT;
}

}  // namespace

bool RelayLink::Pump(uint64_t now_ns) {
  if (problem_since_ns_ == 0) problem_since_ns_ = now_ns;
  if (phase_ == Phase::kDown) {
    if (now_ns >= retry_ns_) Connect(now_ns);
    return false;
  }
  if (phase_ == Phase::kAsked) {
    if (now_ns - since_ns_ >= kConnectTime) {
      Drop({ErrorCode::kTimeout, 0, "no agent to connect to it"}, now_ns);
    }
    return false;
  }
  auto received = Receive();
  Status status = received ? ReceiveData() : std::unexpected(received.error());
  if (status && sender_.wants_data() && !data_asked_) {
    data_asked_ = hooks_.ask({.data = true}).has_value();
  }
  if (status && (sender_.has_kept_more() || now_ns - beacon_ns_ >= kBeaconInterval)) {
    sender_.SendBeacons();
    beacon_ns_ = now_ns;
  }
  if (status) status = SendData();
  if (status) status = SendControl();
  // A relay without room for a packet accepts the session first, and refuses it again.
  if (status && data_.established()) {
    if (!refusal_.empty() && (sender_.has_progress() || sender_.all_stored())) TellRefusal("");
    if (refusal_.empty() && !problem_.empty()) {
      problem_.clear();
      backoff_ns_ = 0;
    }
  }
  if (status && !data_.established() && now_ns - since_ns_ >= kConnectTime) {
    status = Fail(ErrorCode::kTimeout, "no answer");
  }
  if (!status) Drop(status.error(), now_ns);
  return status && *received;
}

void RelayLink::Connect(uint64_t now_ns) {
  phase_ = Phase::kAsked;
  since_ns_ = now_ns;
  if (!hooks_.ask({.data = false, .was_refused = was_refused_})) {
    phase_ = Phase::kDown;
    retry_ns_ = now_ns + kMinRetry;
  }
}

void RelayLink::NewAgent() {
  if (phase_ == Phase::kAsked) phase_ = Phase::kDown;
  if (data_asked_ && !data_.is_open()) data_asked_ = false;
  if (!refusal_.empty()) hooks_.refused(refusal_);
}

void RelayLink::Answer(bool data, RelayAnswer answer, uint64_t now_ns) {
  if (data ? phase_ != Phase::kUp || data_.is_open() : phase_ != Phase::kAsked) return;
  if (!answer.socket) {
    const ErrorCode code = answer.late ? ErrorCode::kTimeout : ErrorCode::kNotFound;
    return Drop({code, 0, std::move(answer.error)}, now_ns);
  }
  RelayConnection& connection = data ? data_ : control_;
  if (const Status opened = connection.Open(std::move(answer.socket), answer.trust); !opened) {
    return Drop(opened.error(), now_ns);
  }
  if (data) return sender_.DataConnected();
  phase_ = Phase::kUp;
  since_ns_ = now_ns;
  was_refused_ = refused_ = false;
  sender_.SetTicket(std::move(answer.ticket));
  sender_.Connected();
}

void RelayLink::Drop(const Error& why, uint64_t now_ns) {
  // One notice an outage: the tries after it fail for the same reason, mostly.
  if (problem_.empty() || backoff_ns_ == 0) {
    problem_since_ns_ = now_ns;
    hooks_.notice(name_ + ": " + why.message + "; trying again, events wait in their buffers");
  }
  problem_ = name_ + ": " + why.message;
  refused_ = !MayBeBusy(why);
  control_.Close();
  data_.Close();
  data_asked_ = data_blocked_ = false;
  sender_.Disconnected();
  phase_ = Phase::kDown;
  backoff_ns_ = std::clamp(backoff_ns_ * 2, kMinRetry, kMaxRetry);
  retry_ns_ = now_ns + backoff_ns_;
}

void RelayLink::TellRefusal(const std::string& why) {
  if (why == refusal_) return;
  refusal_ = why;
  hooks_.refused(why);
}

Result<bool> RelayLink::Receive() {
  buffer_.resize(kRelayReadBytes);
  bool any = false;
  for (;;) {
    WEFT_ASSIGN(const size_t n, control_.Receive(buffer_));
    if (n == 0) return any;
    any = true;
    const Status status = sender_.ReceiveControl(Bytes(buffer_).first(n));
    was_refused_ = !status && status.error().code == ErrorCode::kPermission;
    const bool is_other_version = !status && status.error().code == ErrorCode::kUnsupported;
    if (was_refused_ || is_other_version) TellRefusal(name_ + ": " + status.error().message);
    WEFT_TRY(status);
  }
}

// The relay says nothing there, but with TLS the handshake comes first.
Status RelayLink::ReceiveData() {
  if (!data_.is_open() || data_.established()) return {};
  std::array<uint8_t, 64> room{};
  WEFT_ASSIGN(const size_t n, data_.Receive(room));
  return n == 0 ? Status() : Fail(ErrorCode::kCorrupt, "relay: bytes on the data connection");
}

Status RelayLink::SendControl() {
  std::string& out = sender_.control_out();
  while (!out.empty()) {
    const Bytes bytes(reinterpret_cast<const uint8_t*>(out.data()), out.size());
    WEFT_ASSIGN(const size_t n, control_.Send(bytes, {}));
    if (n == 0) break;
    out.erase(0, n);
  }
  return control_.Flush();
}

Status RelayLink::SendData() {
  data_blocked_ = false;
  if (!data_.is_open()) return {};
  for (uint64_t sent = 0; sent < kBytesPerRound;) {
    const stream::Sender::Out out = sender_.NextData();
    if (out.front.empty() && out.packet.empty()) return data_.Flush();
    WEFT_ASSIGN(const size_t n, data_.Send(out.front, out.packet));
    data_blocked_ = n == 0;
    if (data_blocked_) return {};
    sender_.DataSent(n);
    sent += n;
  }
  return {};
}

void RelayLink::AddPolls(std::vector<pollfd>& polls) {
  if (!control_.is_open()) return;
  polls.push_back(control_.Poll(!sender_.control_out().empty()));
  // Once it is established, the relay says nothing there: its end is seen on both.
  if (!data_.is_open()) return;
  const pollfd data = data_.Poll(data_blocked_);
  if (!data_.established() || (data.events & POLLOUT) != 0) polls.push_back(data);
}

}  // namespace weft::consumer
