// SPDX-License-Identifier: Apache-2.0
// See cpu_streams.h.
#include "node-agent/consumer/cpu_streams.h"

#include <algorithm>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Result<CpuStreams::Stream*> CpuStreams::Open(uint32_t cpu, const StreamRecord& record) {
  WEFT_TRY(prepare_());
  WEFT_ASSIGN(const size_t handle, sink_->AddStream(channel_->name, record));
  const ctf::StreamConfig config{.trace_uuid = uuid_,
                                 .channel_id = channel_->id,
                                 .instance_id = cpu,
                                 .cpu_id = cpu,
                                 .first_sequence = record.next_sequence,
                                 .last_time = record.last_time};
  auto stream = std::make_unique<Stream>(config);
  stream->handle = handle;
  stream->missing = record.discarded;
  stream->missing_sealed = stream->missing_tried = record.last_discarded;
  stream->settled = record;
  if (streams_.size() <= cpu) streams_.resize(cpu + 1);
  streams_[cpu] = std::move(stream);
  return streams_[cpu].get();
}

Status CpuStreams::Restore(const StreamRecord& record) {
  if (record.cpu >= kMaxCpus) return Fail(ErrorCode::kCorrupt, "journal: a stream's CPU");
  WEFT_ASSIGN(const Stream* stream, Open(record.cpu, record));
  (void)stream;
  return {};
}

bool CpuStreams::Make(uint32_t cpu, uint64_t time_ns) {
  if (cpu >= cpus_) return false;
  auto stream = Open(cpu, {.cpu = cpu});
  unanswered_ = !stream && stream.error().code == ErrorCode::kTimeout;
  if (!stream) return false;
  // Readers count what is missing from packet to packet: the first one is empty. It ends before
  // anything else begins: babeltrace2 may swap two packets with one begin where a relay stores them
  // in several files (docs/adr/0053).
  Stream& made = **stream;
  GiveBuffer(made);
  const auto packet = made.writer.Finish(0, time_ns > 0 ? time_ns - 1 : 0);
  if (sink_->Write(made.handle, packet, 0)) {
    made.settled.bytes = packet.size();
    made.settled.packets = 1;
    made.settled.last_time = made.writer.last_time();
  } else {
    made.writer.TakeBack();
  }
  return true;
}

void CpuStreams::GiveBuffer(Stream& stream) {
  if (buffers_.empty()) buffers_.emplace_back(kPacketCapacity);
  stream.buffer = std::move(buffers_.back());
  buffers_.pop_back();
  stream.writer.UseBuffer(stream.buffer.span());
}

bool CpuStreams::GiveBufferFor(Stream& stream, size_t bytes) {
  const bool large = bytes > kPacketRoom;
  if (stream.buffer.empty() && !large) {
    GiveBuffer(stream);
    return true;
  }
  if (stream.buffer.span().size() > kPacketCapacity || !large) return true;
  if (stream.writer.events() > 0) return false;
  if (!stream.buffer.empty()) buffers_.push_back(std::move(stream.buffer));
  stream.buffer = PageBuffer(kLargePacketCapacity);
  stream.writer.UseBuffer(stream.buffer.span());
  return true;
}

void CpuStreams::CountMissing(uint32_t cpu, uint64_t events, uint64_t after_ns, uint64_t until_ns) {
  if (events == 0) return;
  if (cpu >= streams_.size() || streams_[cpu] == nullptr) {
    if (!Make(cpu, after_ns)) return;
  }
  streams_[cpu]->missing_until = std::max(streams_[cpu]->missing_until, until_ns);
  uint64_t& missing = streams_[cpu]->missing;
  missing += std::min(events, kMaxMissing - std::min(missing, kMaxMissing));
}

void CpuStreams::Seal(uint64_t end_time_ns) {
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    const uint64_t events = stream->writer.events();
    if (events == 0 && stream->missing == stream->missing_sealed) continue;
    if (stream->buffer.empty()) GiveBuffer(*stream);
    const size_t bytes = sink_->PacketBytes(stream->handle, stream->writer.bytes());
    const auto packet =
        stream->writer.Finish(stream->missing, std::max(end_time_ns, stream->missing_until), bytes);
    sealed_.push_back({.stream = stream.get(),
                       .buffer = std::move(stream->buffer),
                       .packet = packet,
                       .events = events,
                       .missing = stream->missing,
                       .missing_before = stream->missing_sealed,
                       .end = stream->writer.last_time(),
                       .written = {}});
    stream->missing_sealed = stream->missing_tried = stream->missing;
  }
}

void CpuStreams::Write() {
  for (Sealed& sealed : sealed_) {
    sealed.written = sink_->Write(sealed.stream->handle, sealed.packet, sealed.events);
  }
}

CpuStreams::Settled CpuStreams::Settle() {
  Settled settled;
  // Keeps as many buffers as the last commits needed: new memory costs more than copying the event.
  kept_buffers_ = std::max(sealed_.size(), kept_buffers_ - std::min<size_t>(kept_buffers_, 1));
  buffers_.resize(std::min(buffers_.size(), kept_buffers_));
  for (Sealed& sealed : sealed_) {
    Stream& stream = *sealed.stream;
    if (buffers_.size() < kept_buffers_ && sealed.buffer.span().size() == kPacketCapacity)
      buffers_.push_back(std::move(sealed.buffer));
    StreamRecord& record = stream.settled;
    record.discarded = sealed.missing;
    if (sealed.written) {
      settled.delivered += sealed.events;
      record.bytes += sealed.packet.size();
      record.packets++;
      record.events += sealed.events;
      record.last_time = sealed.end;
      record.last_discarded = sealed.missing;
      continue;
    }
    // Its number is the next packet's: readers see its events as discarded, and no gap.
    stream.writer.TakeBack();
    stream.missing_sealed = sealed.missing_before;
    stream.missing += sealed.events;
    stream.missing_tried = sealed.missing + sealed.events;
    record.discarded += sealed.events;
    settled.lost += sealed.events;
    if (settled.status) settled.status = std::move(sealed.written);
  }
  sealed_.clear();
  return settled;
}

bool CpuStreams::pending() const {
  for (const auto& stream : streams_) {
    if (stream != nullptr &&
        (stream->writer.events() > 0 || stream->missing != stream->missing_tried)) {
      return true;
    }
  }
  return false;
}

std::vector<StreamRecord> CpuStreams::Records() const {
  std::vector<StreamRecord> records;
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    records.push_back(stream->settled);
    records.back().next_sequence = stream->writer.next_sequence();
  }
  return records;
}

uint64_t CpuStreams::packets() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : s->settled.packets;
  return sum;
}

uint64_t CpuStreams::bytes() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : s->settled.bytes;
  return sum;
}

uint64_t CpuStreams::count() const {
  uint64_t count = 0;
  for (const auto& s : streams_) count += s == nullptr ? 0 : 1;
  return count;
}

}  // namespace weft::consumer
