// SPDX-License-Identifier: Apache-2.0
// The node's side of the conversation; see sender.h.
#include <algorithm>

#include "lib/stream/limits.h"
#include "lib/stream/sender.h"

namespace weft::stream {
namespace {

std::unexpected<Error> Contradiction(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("relay: ") + what);
}

}  // namespace

// The sender's own messages have no text but names that were checked and metadata, which is UTF-8.
void Sender::Say(const Message& message) { (void)Append(message, control_out_); }

void Sender::Connected() {
  Disconnected();
  has_progress_ = false;
  phase_ = Phase::kOffered;
  Say(Offer{.versions = {WEFT_STREAM_VERSION}});
}

void Sender::Disconnected() {
  phase_ = Phase::kDown;
  data_ = false;
  reader_ = MessageReader();
  control_out_.clear();
  out_front_ = out_packet_ = {};
  handles_.clear();
  for (auto& [number, trace] : traces_) {
    trace.asked = trace.open = trace.end_asked = false;
  }
  for (auto& [number, stream] : streams_) {
    stream.open = false;
    stream.sent = stream.reach = stream.stored;
  }
}

Status Sender::ReceiveControl(Bytes bytes) {
  reader_.Push(bytes);
  for (;;) {
    WEFT_ASSIGN(auto message, reader_.Next());
    if (!message) return {};
    WEFT_TRY(std::visit([this](const auto& m) { return this->Handle(m); }, *message));
    if (control_out_.size() > kMaxControlBacklog) {
      return Fail(ErrorCode::kLimit, "relay: it does not read its control connection");
    }
  }
}

Status Sender::Handle(const Chosen& message) {
  if (phase_ != Phase::kOffered || message.version != WEFT_STREAM_VERSION) {
    return Contradiction("a version that was not offered");
  }
  phase_ = Phase::kChosen;
  Say(hello_);
  return {};
}

Status Sender::Handle(const Welcome& message) {
  if (phase_ != Phase::kChosen) return Contradiction("a welcome out of turn");
  phase_ = Phase::kWelcome;
  session_ = message.session;
  OpenTraces();
  return {};
}

void Sender::OpenTraces() {
  if (phase_ != Phase::kWelcome) return;
  for (auto& [number, trace] : traces_) {
    if (!trace.asked) Open(number, trace);
  }
}

void Sender::Open(uint32_t number, Trace& trace) {
  trace.asked = true;
  Say(OpenTrace{.trace = number,
                .pod = trace.name.pod,
                .pod_uid = trace.name.pod_uid,
                .container = trace.name.container,
                .uuid = trace.name.uuid,
                .path = trace.name.path,
                .metadata = trace.metadata});
}

Status Sender::Handle(const TraceOpened& message) {
  const auto found = traces_.find(message.trace);
  // Forgotten meanwhile.
  if (found == traces_.end()) return {};
  Trace& trace = found->second;
  if (!trace.asked || trace.open) return Contradiction("a trace that was not opened");
  if (message.metadata > trace.metadata) return Contradiction("metadata that it was to cut off");
  if (message.metadata < trace.metadata) {
    return Fail(ErrorCode::kCorrupt, "relay: metadata that it had stored is gone");
  }
  trace.open = trace.was_open = true;
  for (const Piece& piece : trace.pieces) SayMetadata(message.trace, piece);
  if (trace.has_losses) Say(trace.losses);
  for (const auto& [number, stream] : streams_) {
    if (stream.trace == message.trace) OpenStreams(number);
  }
  SayEnds();
  return {};
}

void Sender::SayMetadata(uint32_t number, const Piece& piece) {
  Say(Metadata{.trace = number, .offset = piece.offset, .text = piece.text});
}

Status Sender::Handle(const MetadataStored& message) {
  const auto found = traces_.find(message.trace);
  if (found == traces_.end()) return {};
  Trace& trace = found->second;
  if (!trace.open || trace.pieces.empty() || trace.pieces.front().offset != message.offset ||
      trace.pieces.front().text.size() != message.bytes) {
    return Contradiction("metadata that was not sent");
  }
  trace.metadata = std::max(trace.metadata, message.offset + message.bytes);
  trace.pieces.pop_front();
  SayEnds();
  return {};
}

void Sender::OpenStreams(uint32_t number) {
  const Stream& stream = streams_.at(number);
  Say(OpenStream{.trace = stream.trace,
                 .stream = number,
                 .channel = stream.channel,
                 .cpu = stream.cpu,
                 .next = stream.stored,
                 .events = stream.events});
}

Status Sender::Handle(const StreamOpened& message) {
  const auto found = streams_.find(message.stream);
  if (found == streams_.end()) return {};
  Stream& stream = found->second;
  if (stream.open || !traces_.at(stream.trace).open) {
    return Contradiction("a stream that was not opened");
  }
  if (message.next > stream.stored) return Contradiction("packets that it was to cut off");
  if (!handles_.emplace(message.handle, message.stream).second) {
    return Contradiction("one handle for two streams");
  }
  stream.open = true;
  stream.handle = message.handle;
  stream.sent = stream.reach = stream.stored;
  stream.said = 0;
  traces_.at(stream.trace).beacon_due = true;
  if (message.next < stream.stored) {
    SayLost(stream, message.next, stream.stored - 1, "stored_and_gone");
  }
  return {};
}

uint32_t Sender::ByHandle(uint64_t handle) const {
  const auto found = handles_.find(handle);
  return found == handles_.end() ? 0 : found->second;
}

Status Sender::Handle(const Stored& message) {
  const uint32_t number = ByHandle(message.handle);
  if (number == 0) return {};
  Stream& stream = streams_.at(number);
  if (message.seq >= stream.reach) return Contradiction("packets that were not sent");
  has_progress_ = has_progress_ || message.seq >= stream.stored;
  Release(number, stream, message.seq + 1);
  SayEnds();
  return {};
}

Status Sender::Handle(const Gap& message) {
  const uint32_t number = ByHandle(message.handle);
  if (number == 0) return {};
  Stream& stream = streams_.at(number);
  if (message.last < message.first || message.last >= stream.reach) {
    return Contradiction("a gap in what was not sent");
  }
  if (message.first < stream.stored) {
    SayLost(stream, message.first, std::min(message.last, stream.stored - 1), "stored_and_gone");
  }
  // Packets behind it are sent again, too; the relay knows what it has.
  if (message.last >= stream.stored) {
    stream.sent = std::min(stream.sent, std::max(message.first, stream.stored));
  }
  return {};
}

void Sender::SayLost(const Stream& stream, uint64_t first, uint64_t last, const char* reason) {
  Say(PacketsLost{
      .handle = stream.handle, .first = first, .last = last, .stage = "relay", .reason = reason});
}

void Sender::SayEnds() {
  for (auto& [number, trace] : traces_) {
    if (!trace.end_wanted || trace.end_asked || trace.ended || !trace.open) continue;
    if (!MetadataIsStored(trace) || !PacketsAreStored(number)) continue;
    trace.end_asked = true;
    Say(weft::stream::EndTrace{.trace = number});
  }
}

Status Sender::Handle(const TraceEnded& message) {
  const auto found = traces_.find(message.trace);
  if (found == traces_.end() || !found->second.end_asked) return {};
  found->second.ended = true;
  return {};
}

Status Sender::Handle(const Refusal& message) const {
  const bool is_known =
      std::ranges::find(message.versions, WEFT_STREAM_VERSION) != message.versions.end();
  if (phase_ != Phase::kOffered || is_known)
    return Fail(ErrorCode::kPermission, "relay: " + message.reason);
  // The first version's relays did not name any.
  const uint32_t newest = message.versions.empty() ? 1 : std::ranges::max(message.versions);
  const bool is_old = newest < WEFT_STREAM_VERSION;
  return Fail(ErrorCode::kUnsupported,
              std::string(is_old ? "the relay is older than the node"
                                 : "the node is older than the relay") +
                  ": the relay knows version " + std::to_string(newest) +
                  " of the stream protocol, the node needs " + std::to_string(WEFT_STREAM_VERSION) +
                  (is_old ? "; upgrade the relay" : "; upgrade the node's agent"));
}

// The promise holds for all streams of a trace, so it waits until the relay has all of them open.
bool Sender::MayPromise(const Trace& trace) const {
  const auto is_open = [this](uint32_t stream) { return streams_.at(stream).open; };
  return trace.open && trace.promise != 0 && std::ranges::all_of(trace.streams, is_open);
}

void Sender::SendBeacons() {
  has_kept_more_ = false;
  if (phase_ != Phase::kWelcome) return;
  uint64_t newest = 0;
  bool is_due = false;
  for (auto& [number, trace] : traces_) {
    trace.may_promise = MayPromise(trace);
    if (!trace.may_promise) continue;
    newest = std::max(newest, trace.promise);
    is_due = is_due || trace.beacon_due;
  }
  if (!is_due) return;
  Beacon beacon{.time = newest, .traces = {}, .kept = {}};
  const auto shares = [newest](const Trace& trace) {
    return trace.may_promise && trace.promise + kMaxPromiseSpread >= newest;
  };
  for (auto& [number, trace] : traces_) {
    if (shares(trace)) {
      beacon.time = std::min(beacon.time, trace.promise);
    } else {
      beacon.traces.push_back({.trace = number, .time = trace.may_promise ? trace.promise : 0});
    }
    if (!trace.may_promise) continue;
    trace.beacon_due = false;
    for (const uint32_t key : trace.streams) {
      Stream& stream = streams_.at(key);
      if (stream.said == stream.kept) continue;
      stream.said = stream.kept;
      beacon.kept.push_back({.handle = stream.handle, .next = stream.kept});
    }
  }
  Say(beacon);
}

void Sender::SendSent() {
  if (phase_ != Phase::kWelcome) return;
  Sent sent;
  for (auto& [number, stream] : streams_) {
    if (!stream.open || stream.reach == 0) continue;
    sent.streams.push_back({.handle = stream.handle, .last = stream.reach - 1});
    if (sent.streams.size() < kMaxBeaconStreams) continue;
    Say(sent);
    sent.streams.clear();
  }
  if (!sent.streams.empty()) Say(sent);
}

}  // namespace weft::stream
