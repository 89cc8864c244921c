// SPDX-License-Identifier: Apache-2.0
// See session.h.
#include "relay/ingest/session.h"

#include <sys/random.h>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <cstdlib>
#include <utility>

#include "lib/stream/packet.h"
#include "relay/ingest/deadline.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {
namespace {

constexpr auto kNoThrow = asio::experimental::as_tuple(asio::use_awaitable);

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != ssize_t{sizeof(number)}) std::abort();
  return number;
}

stream::Receiver::Door DoorOf(const SessionContext& context) {
  return context.gate == nullptr ? stream::Receiver::Door::kOpen : stream::Receiver::Door::kClosed;
}

const char* ReasonOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kIo:
      return "storage";
    case ErrorCode::kClosed:
      return "replaced";
    default:
      return "protocol";
  }
}

}  // namespace

void NoteReadError(Refusals& refusals, const std::string& who, const Error& error) {
  if (error.code == ErrorCode::kClosed) return;
  refusals.Note(error.code == ErrorCode::kLimit ? "limit" : "tls", who, error.message);
}

Session::Session(const SessionContext& context, std::shared_ptr<Peer> control, Welcomed welcomed)
    : context_(context),
      receiver_(context.archive, RandomNumber(), stream::Receiver::Data::kInOrder, DoorOf(context)),
      when_welcomed_(std::move(welcomed)),
      control_(std::move(control)) {
  context_.metrics.Add(metrics::Id::kRelaySessions, {});
}

Session::~Session() { context_.metrics.Add(metrics::Id::kRelaySessions, {}, -1); }

bool Session::TakeData(std::shared_ptr<Peer> data) {
  if (closed_ || !receiver_.welcomed() || data_ != nullptr) return false;
  data_ = std::move(data);
  return true;
}

asio::awaitable<void> Session::ReadControl(std::chrono::milliseconds hello_limit) {
  const auto self = shared_from_this();
  Deadline hello(control_->executor(), hello_limit, [this] {
    Refuse("timeout", {ErrorCode::kTimeout, 0, "no hello within the time for it"});
  });
  std::optional<Deadline> data;
  while (!closed_) {
    const auto n = co_await control_->Read(context_.scratch.control);
    // Closed meanwhile: a read that was complete by then comes without an error all the same.
    if (closed_) break;
    if (!n) {
      NoteReadError(context_.refusals, Who(), n.error());
      break;
    }
    const bool was_welcomed = receiver_.welcomed();
    if (!was_welcomed) bytes_before_welcome_ += *n;
    if (bytes_before_welcome_ > kMaxBytesBeforeWelcome) {
      Refuse("limit", {ErrorCode::kLimit, 0, "too many bytes before the welcome"});
      break;
    }
    Accept(receiver_.ReceiveControl(Bytes(context_.scratch.control).first(*n)));
    if (receiver_.awaits_decision() && !closed_) co_await Decide();
    if (closed_ || was_welcomed || !receiver_.welcomed()) continue;
    hello.Lift();
    if (const Status welcome = when_welcomed_(*this); !welcome) {
      Refuse("limit", welcome.error());
      break;
    }
    data.emplace(control_->executor(), kDataTime, [this] {
      if (data_ == nullptr) Refuse("timeout", {ErrorCode::kTimeout, 0, "no data connection"});
    });
  }
  Close();
}

// Welcomes the session of the hello that came, or refuses it.
asio::awaitable<void> Session::Decide() {
  const auto until = std::chrono::steady_clock::now() + kSessionWait;
  asio::steady_timer timer(control_->executor());
  for (;;) {
    const relay_trust::Decision decision = context_.gate->Decide(receiver_.hello());
    if (decision.kind == relay_trust::Decision::Kind::kAdmit) co_return Accept(receiver_.Welcome());
    if (decision.kind == relay_trust::Decision::Kind::kRefuse ||
        std::chrono::steady_clock::now() >= until) {
      co_return Refuse(decision.reason, {ErrorCode::kPermission, 0, decision.message});
    }
    timer.expires_after(kSessionLook);
    (void)co_await timer.async_wait(kNoThrow);
    if (closed_) co_return;
  }
}

asio::awaitable<void> Session::ReadData(size_t header_size) {
  const auto self = shared_from_this();
  stream::PacketReader reader(header_size);
  while (!closed_) {
    const auto n = co_await data_->Read(reader.Room());
    if (!n && !closed_) NoteReadError(context_.refusals, Who(), n.error());
    if (!n || closed_) break;
    const auto complete = reader.Received(*n);
    if (!complete) {
      Accept(std::unexpected(complete.error()));
    } else if (*complete) {
      Accept(receiver_.ReceivePacket(reader.header(), reader.packet()));
    }
  }
  Close();
}

std::string Session::Who() const {
  const stream::Hello& hello = receiver_.hello();
  const std::string from = "from " + control_->address();
  if (hello.node.empty()) return from;
  return "session of node " + hello.node + " for " + hello.kubernetes_namespace + "/" +
         hello.trace + " " + from;
}

void Session::Refuse(const char* reason, const Error& error) {
  if (closed_) return;
  context_.refusals.Note(reason, Who(), error.message);
  receiver_.Refuse(error);
  Close();
}

void Session::Close() {
  if (closed_) return;
  closed_ = true;
  receiver_.Close();
  (void)context_.shares.Change(receiver_.hello().kubernetes_namespace, streams_, 0);
  Write();
  control_->Close();
  if (data_ != nullptr) data_->Close();
}

void Session::Accept(const Status& status) {
  if (closed_) return;
  receiver_.Flush();
  if (!status) return Refuse(ReasonOf(status.error()), status.error());
  Write();
  const size_t before = std::exchange(streams_, receiver_.open_streams());
  if (!context_.shares.Change(receiver_.hello().kubernetes_namespace, before, streams_) &&
      context_.gate != nullptr) {
    return Refuse("limit", {ErrorCode::kLimit, 0, "too many streams of its namespace, or of all"});
  }
  if (control_->backlog() > kMaxBacklog) {
    Refuse("slow", {ErrorCode::kLimit, 0, "it does not read its control connection"});
  }
}

void Session::Write() {
  if (!receiver_.control_out().empty()) control_->Write(std::exchange(receiver_.control_out(), {}));
}

}  // namespace weft::ingest
