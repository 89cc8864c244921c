// SPDX-License-Identifier: Apache-2.0
// See receiver.h.
#include "lib/stream/receiver.h"

#include <algorithm>
#include <utility>

#include "lib/stream/limits.h"

namespace weft::stream {
namespace {

std::unexpected<Error> Contradiction(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("node: ") + what);
}

bool IsName(const std::string& name) { return !name.empty() && name.size() <= kMaxNameBytes; }

}  // namespace

Status Receiver::Say(const Message& message) {
  if (control_out_.size() > kMaxControlBacklog) {
    return Fail(ErrorCode::kLimit, "node: it does not read its control connection");
  }
  return Append(message, control_out_);
}

void Receiver::Refuse(const Error& error) {
  Refusal refusal{.reason = error.message, .versions = {}};
  if (phase_ == Phase::kNew) refusal.versions = {WEFT_STREAM_VERSION};
  (void)Append(refusal, control_out_);
}

void Receiver::Close() {
  for (const auto& [number, key] : traces_) archive_->CloseTrace(key);
  archive_->CloseSession(session_);
  traces_.clear();
  streams_.clear();
}

Status Receiver::ReceiveControl(Bytes bytes) {
  reader_.Push(bytes);
  for (;;) {
    WEFT_ASSIGN(auto message, reader_.Next());
    if (!message) return {};
    WEFT_TRY(std::visit([this](const auto& m) { return this->Handle(m); }, *message));
  }
}

Status Receiver::Handle(const Offer& message) {
  if (phase_ != Phase::kNew) return Contradiction("versions out of turn");
  if (std::ranges::find(message.versions, WEFT_STREAM_VERSION) == message.versions.end()) {
    const uint32_t newest = message.versions.empty() ? 0 : std::ranges::max(message.versions);
    const std::string versions = ": it offers version " + std::to_string(newest) +
                                 " of the stream protocol, the relay needs " +
                                 std::to_string(WEFT_STREAM_VERSION);
    return Fail(ErrorCode::kUnsupported,
                newest < WEFT_STREAM_VERSION
                    ? "the node is older than the relay" + versions + "; upgrade the node's agent"
                    : "the relay is older than the node" + versions + "; upgrade the relay");
  }
  phase_ = Phase::kChosen;
  return Say(Chosen{.version = WEFT_STREAM_VERSION});
}

Status Receiver::Handle(const Hello& message) {
  if (phase_ != Phase::kChosen) return Contradiction("hello out of turn");
  if (!IsName(message.node) || !IsName(message.kubernetes_namespace) || !IsName(message.trace) ||
      message.trace_uid.size() > kMaxNameBytes || message.ticket.size() > kMaxTicketBytes) {
    return Contradiction("a name that is none");
  }
  hello_ = message;
  phase_ = Phase::kHello;
  return door_ == Door::kOpen ? Welcome() : Status();
}

Status Receiver::Welcome() {
  phase_ = Phase::kWelcome;
  return Say(stream::Welcome{.session = session_});
}

Status Receiver::Handle(const OpenTrace& message) {
  if (phase_ != Phase::kWelcome) return Contradiction("a trace before its hello");
  if (traces_.size() >= kMaxTraces) return Fail(ErrorCode::kLimit, "too many traces");
  if (!IsName(message.pod) || !IsName(message.container) || !IsName(message.uuid) ||
      message.pod_uid.size() > kMaxNameBytes || message.path.size() > kMaxPathBytes) {
    return Contradiction("a name that is none");
  }
  if (traces_.contains(message.trace)) return Contradiction("a trace is opened twice");
  WEFT_ASSIGN(const Archive::OpenedTrace opened, archive_->OpenTrace(hello_, message));
  if (opened.metadata > message.metadata) {
    return Fail(ErrorCode::kCorrupt, "archive: it did not cut the metadata");
  }
  traces_[message.trace] = opened.key;
  apart_.insert(message.trace);
  return Say(TraceOpened{.trace = message.trace, .metadata = opened.metadata});
}

Result<uint64_t> Receiver::TraceKey(uint32_t trace) const {
  const auto found = traces_.find(trace);
  if (found == traces_.end()) return Contradiction("a trace that is not open");
  return found->second;
}

Status Receiver::Handle(const Metadata& message) {
  WEFT_ASSIGN(const uint64_t key, TraceKey(message.trace));
  WEFT_TRY(archive_->WriteMetadata(key, message.offset, message.text));
  return Say(MetadataStored{
      .trace = message.trace, .offset = message.offset, .bytes = message.text.size()});
}

Status Receiver::Handle(const OpenStream& message) {
  WEFT_ASSIGN(const uint64_t key, TraceKey(message.trace));
  if (streams_.size() >= kMaxStreams) return Fail(ErrorCode::kLimit, "too many streams");
  if (!IsName(message.channel)) return Contradiction("a name that is none");
  WEFT_ASSIGN(const Archive::OpenedStream opened, archive_->OpenStream(key, message));
  if (opened.next > message.next || streams_.contains(opened.handle)) {
    return Fail(ErrorCode::kCorrupt, "archive: it did not cut the stream");
  }
  streams_[opened.handle] = {
      .next = opened.next, .asked = message.next, .at_sent = ~uint64_t{0}, .held = {}};
  return Say(StreamOpened{.stream = message.stream, .handle = opened.handle, .next = opened.next});
}

Result<Receiver::Stream*> Receiver::Find(uint64_t handle) {
  const auto found = streams_.find(handle);
  if (found == streams_.end()) return Contradiction("a stream that is not open");
  return &found->second;
}

// --- packets -------------------------------------------------------------------------------------

Status Receiver::ReceivePacket(const weft_stream_packet& header, Bytes packet) {
  WEFT_ASSIGN(Stream * stream, Find(header.stream_handle));
  const uint64_t handle = header.stream_handle;
  const bool first = header.prev_seq == WEFT_STREAM_NO_SEQ;
  if (header.seq == WEFT_STREAM_NO_SEQ || (!first && header.prev_seq >= header.seq)) {
    return Contradiction("packet numbers that go back");
  }
  if (header.seq < stream->next) {
    unacknowledged_.insert(handle);
    return {};
  }
  const uint64_t after = first ? 0 : header.prev_seq + 1;
  if (after <= stream->next) {
    WEFT_TRY(Store(handle, *stream, header, packet));
    return StoreHeld(handle, *stream);
  }
  Hold(*stream, header, packet);
  return AskFor(handle, *stream, after, false);
}

Status Receiver::Store(uint64_t handle, Stream& stream, const weft_stream_packet& header,
                       Bytes packet) {
  WEFT_TRY(archive_->StorePacket(handle, header, packet));
  stream.next = header.seq + 1;
  unacknowledged_.insert(handle);
  return {};
}

void Receiver::Hold(Stream& stream, const weft_stream_packet& header, Bytes packet) {
  if (stream.held.contains(header.seq)) return;
  if (held_packets_ >= kMaxHeldPackets || held_bytes_ + packet.size() > kMaxHeldBytes) return;
  stream.held[header.seq] = {header, std::vector<uint8_t>(packet.begin(), packet.end())};
  held_packets_++;
  held_bytes_ += packet.size();
}

Status Receiver::StoreHeld(uint64_t handle, Stream& stream) {
  while (!stream.held.empty()) {
    const auto at = stream.held.begin();
    const weft_stream_packet& header = at->second.header;
    const bool there = header.seq < stream.next;
    if (!there && header.prev_seq + 1 > stream.next) break;
    if (!there) WEFT_TRY(Store(handle, stream, header, at->second.packet));
    held_packets_--;
    held_bytes_ -= at->second.packet.size();
    stream.held.erase(at);
  }
  return {};
}

Status Receiver::AskFor(uint64_t handle, Stream& stream, uint64_t end, bool again) {
  if (!again && end <= stream.asked) return {};
  const uint64_t first = again ? stream.next : std::max(stream.next, stream.asked);
  if (first >= end) return {};
  stream.asked = std::max(stream.asked, end);
  return Say(Gap{.handle = handle, .first = first, .last = end - 1});
}

void Receiver::Flush() {
  for (const uint64_t handle : unacknowledged_) {
    const auto found = streams_.find(handle);
    if (found == streams_.end() || found->second.next == 0) continue;
    (void)Append(Stored{.handle = handle, .seq = found->second.next - 1}, control_out_);
  }
  unacknowledged_.clear();
}

// --- the rest ------------------------------------------------------------------------------------

Status Receiver::Handle(const Sent& message) {
  if (data_ == Data::kInOrder) return {};
  for (const SentPacket& sent : message.streams) {
    const auto found = streams_.find(sent.handle);
    // Its trace ended meanwhile.
    if (found == streams_.end()) continue;
    Stream& stream = found->second;
    // While some packets arrive, others may still be in flight beside this message. A packet that
    // was requested once may have been lost, too.
    const bool stands_still = std::exchange(stream.at_sent, stream.next) == stream.next;
    if (sent.last == WEFT_STREAM_NO_SEQ || sent.last < stream.next || !stands_still) continue;
    WEFT_TRY(AskFor(sent.handle, stream, sent.last + 1, true));
  }
  return {};
}

Status Receiver::Handle(const Beacon& message) {
  for (const KeptPackets& kept : message.kept) {
    WEFT_ASSIGN(const Stream* stream, Find(kept.handle));
    // The node keeps a packet only after the relay has acknowledged it.
    if (kept.next > stream->next) return Contradiction("it keeps packets that are not stored");
    archive_->Keep(kept.handle, kept.next);
  }
  std::set<uint32_t> apart;
  for (const TraceTime& own : message.traces) {
    WEFT_ASSIGN(const uint64_t key, TraceKey(own.trace));
    archive_->Promise(key, own.time);
    apart.insert(own.trace);
  }
  for (const uint32_t trace : apart_)
    if (!apart.contains(trace)) archive_->Follow(traces_.at(trace), session_);
  apart_ = std::move(apart);
  archive_->PromiseAll(session_, message.time);
  return {};
}

Status Receiver::Handle(const Losses& message) {
  WEFT_ASSIGN(const uint64_t key, TraceKey(message.trace));
  archive_->Report(key, message);
  return {};
}

Status Receiver::Handle(const PacketsLost& message) {
  WEFT_ASSIGN(Stream * stream, Find(message.handle));
  if (message.last < message.first || message.last == WEFT_STREAM_NO_SEQ ||
      message.stage.size() > kMaxNameBytes || message.reason.size() > kMaxNameBytes) {
    return Contradiction("a loss that is none");
  }
  if (message.first > stream->next || message.last < stream->next) return {};
  archive_->Lost(message.handle, message);
  stream->next = message.last + 1;
  return StoreHeld(message.handle, *stream);
}

Status Receiver::Handle(const EndTrace& message) {
  WEFT_ASSIGN(const uint64_t key, TraceKey(message.trace));
  WEFT_ASSIGN(TraceEnded ended, archive_->EndTrace(key));
  ended.trace = message.trace;
  return Say(ended);
}

Status Receiver::Handle(const Refusal& message) {
  return Fail(ErrorCode::kClosed, "node: " + message.reason);
}

}  // namespace weft::stream
