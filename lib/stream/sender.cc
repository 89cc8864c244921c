// SPDX-License-Identifier: Apache-2.0
// See sender.h. Here: what there is to be sent, and the data connection; sender_control.cc has the
// conversation.
#include "lib/stream/sender.h"

#include <algorithm>

#include "lib/stream/limits.h"

namespace weft::stream {

uint32_t Sender::AddTrace(TraceName name, uint64_t metadata) {
  const uint32_t number = next_trace_++;
  Trace& trace = traces_[number];
  trace.name = std::move(name);
  trace.metadata = metadata;
  trace.losses.trace = number;
  OpenTraces();
  return number;
}

void Sender::WriteMetadata(uint32_t number, uint64_t offset, std::string_view text) {
  Trace& trace = traces_.at(number);
  trace.ended = trace.end_wanted = trace.end_asked = false;
  trace.pieces.push_back({offset, std::string(text)});
  if (trace.open) SayMetadata(number, trace.pieces.back());
}

uint32_t Sender::AddStream(uint32_t trace, std::string channel, uint32_t cpu, uint64_t next,
                           uint64_t events) {
  const uint32_t number = next_stream_++;
  streams_[number] = {.trace = trace,
                      .channel = std::move(channel),
                      .cpu = cpu,
                      .stored = next,
                      .events = events,
                      .packets = {},
                      .sent = next,
                      .reach = next,
                      .ever = next,
                      .kept = next};
  Trace& of = traces_.at(trace);
  of.streams.push_back(number);
  if (of.open) OpenStreams(number);
  return number;
}

void Sender::Put(uint32_t number, uint32_t events, Bytes packet) {
  Stream& stream = streams_.at(number);
  stream.packets.push_back({events, packet});
  Trace& trace = traces_.at(stream.trace);
  trace.ended = trace.end_wanted = trace.end_asked = false;
}

void Sender::Promise(uint32_t number, uint64_t time) {
  Trace& trace = traces_.at(number);
  for (const uint32_t key : trace.streams) {
    Stream& stream = streams_.at(key);
    has_kept_more_ = has_kept_more_ || stream.kept != stream.stored;
    trace.beacon_due = trace.beacon_due || stream.kept != stream.stored;
    stream.kept = stream.stored;
  }
  trace.beacon_due = trace.beacon_due || time != trace.promise;
  trace.promise = time;
}

void Sender::Report(const Losses& losses) {
  const auto found = traces_.find(losses.trace);
  if (found == traces_.end()) return;
  Trace& trace = found->second;
  if (trace.losses.discarded == losses.discarded && trace.losses.lost == losses.lost) return;
  trace.losses = losses;
  trace.has_losses = true;
  if (trace.open) Say(trace.losses);
}

void Sender::EndTrace(uint32_t number) {
  Trace& trace = traces_.at(number);
  trace.end_wanted = true;
  SayEnds();
}

void Sender::ForgetTrace(uint32_t number) {
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (at->second.trace == number) {
      if (out_stream_ == at->first) KeepOut();
      handles_.erase(at->second.handle);
      at = streams_.erase(at);
    } else {
      ++at;
    }
  }
  traces_.erase(number);
}

bool Sender::opened(uint32_t trace) const {
  const Trace& t = traces_.at(trace);
  return t.was_open && MetadataIsStored(t);
}

bool Sender::all_stored(uint32_t trace) const {
  return MetadataIsStored(traces_.at(trace)) && PacketsAreStored(trace);
}

bool Sender::all_stored() const {
  return std::ranges::all_of(traces_,
                             [this](const auto& entry) { return all_stored(entry.first); });
}

bool Sender::ended(uint32_t trace) const { return traces_.at(trace).ended; }

bool Sender::MetadataIsStored(const Trace& trace) const { return trace.pieces.empty(); }

bool Sender::PacketsAreStored(uint32_t trace) const {
  return std::ranges::all_of(traces_.at(trace).streams, [this](uint32_t stream) {
    return streams_.at(stream).packets.empty();
  });
}

// Packets before `end` are stored. A packet that is being sent again is still sent to its end.
void Sender::Release(uint32_t number, Stream& stream, uint64_t end) {
  if (out_stream_ == number && out_seq_ < end) KeepOut();
  while (stream.stored < end && !stream.packets.empty()) {
    stream.events += stream.packets.front().events;
    stream.packets.pop_front();
    stream.stored++;
  }
  stream.sent = std::max(stream.sent, stream.stored);
}

// Keeps a copy of the packet's bytes that are being sent, so that the caller may take its bytes
// back.
void Sender::KeepOut() {
  if (out_packet_.empty()) return;
  out_kept_.assign(out_packet_.begin(), out_packet_.end());
  out_packet_ = out_kept_;
}

// --- the data connection -------------------------------------------------------------------------

void Sender::DataConnected() {
  data_ = true;
  hello_bytes_ = EncodeHello(session_);
  out_front_ = hello_bytes_;
  out_packet_ = {};
}

// Streams take turns, so that a busy one does not keep the others' packets from a commit.
bool Sender::PickPacket() {
  const auto ready = [this](const Stream& stream) {
    return stream.open && stream.sent < stream.stored + stream.packets.size() &&
           MetadataIsStored(traces_.at(stream.trace));
  };
  auto at = streams_.upper_bound(out_stream_);
  for (size_t i = 0; i < streams_.size(); i++, ++at) {
    if (at == streams_.end()) at = streams_.begin();
    Stream& stream = at->second;
    if (!ready(stream)) continue;
    out_stream_ = at->first;
    out_seq_ = stream.sent;
    const Packet& packet = stream.packets[stream.sent - stream.stored];
    header_bytes_ =
        EncodeHeader({.stream_handle = stream.handle,
                      .seq = stream.sent,
                      .prev_seq = stream.sent == 0 ? WEFT_STREAM_NO_SEQ : stream.sent - 1,
                      .events = packet.events},
                     packet.bytes);
    out_front_ = header_bytes_;
    out_packet_ = packet.bytes;
    stream.sent++;
    if (stream.sent <= stream.ever) resent_++;
    stream.reach = std::max(stream.reach, stream.sent);
    stream.ever = std::max(stream.ever, stream.sent);
    return true;
  }
  return false;
}

Sender::Out Sender::NextData() {
  if (!data_) return {};
  if (out_front_.empty() && out_packet_.empty() && !PickPacket()) return {};
  return {out_front_, out_packet_};
}

void Sender::DataSent(size_t bytes) {
  const size_t front = std::min(bytes, out_front_.size());
  out_front_ = out_front_.subspan(front);
  out_packet_ = out_packet_.subspan(std::min(bytes - front, out_packet_.size()));
}

}  // namespace weft::stream
