// SPDX-License-Identifier: Apache-2.0
// See cpu_streams.h.
#include "node-agent/consumer/cpu_streams.h"

#include <algorithm>

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Result<CpuStreams::Stream*> CpuStreams::Open(uint32_t cpu, const StreamRecord& record) {
  WEFT_TRY(prepare_());
  // What a killed consumer wrote beyond its journal goes away.
  WEFT_ASSIGN(const size_t handle, store_->AddStream(channel_->name, cpu, record.bytes));
  const store::StreamState& state = store_->state(handle);
  if (state.bytes != record.bytes) {
    return Fail(ErrorCode::kCorrupt, state.file + ": its length is not what the journal says");
  }
  const ctf::StreamConfig config{.trace_uuid = uuid_,
                                 .channel_id = channel_->id,
                                 .instance_id = cpu,
                                 .cpu_id = cpu,
                                 .first_sequence = record.next_sequence,
                                 .last_time = state.last_time};
  auto stream = std::make_unique<Stream>(config);
  stream->handle = handle;
  stream->missing = stream->missing_settled = record.discarded;
  stream->missing_sealed = state.last_discarded;
  stream->bytes = state.bytes;
  stream->packets = state.packets;
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
  // Readers count what is missing from packet to packet: the first one is empty.
  Stream& made = **stream;
  GiveBuffer(made);
  if (!store_->WritePacket(made.handle, made.writer.Finish(0, time_ns))) made.writer.TakeBack();
  made.bytes = store_->state(made.handle).bytes;
  made.packets = store_->state(made.handle).packets;
  return true;
}

void CpuStreams::GiveBuffer(Stream& stream) {
  if (buffers_.empty()) buffers_.emplace_back(kPacketCapacity);
  stream.buffer = std::move(buffers_.back());
  buffers_.pop_back();
  stream.writer.UseBuffer(stream.buffer.span());
}

void CpuStreams::CountMissing(uint32_t cpu, uint64_t events, uint64_t time_ns) {
  if (events == 0) return;
  if (cpu >= streams_.size() || streams_[cpu] == nullptr) {
    if (!Make(cpu, time_ns)) return;
  }
  streams_[cpu]->missing += events;
}

void CpuStreams::Seal(uint64_t end_time_ns) {
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    const uint64_t events = stream->writer.events();
    if (events == 0 && stream->missing == stream->missing_sealed) continue;
    if (stream->buffer.empty()) GiveBuffer(*stream);
    const size_t bytes = store_->PacketBytes(stream->handle, stream->writer.bytes());
    const auto packet = stream->writer.Finish(stream->missing, end_time_ns, bytes);
    sealed_.push_back({.stream = stream.get(),
                       .buffer = std::move(stream->buffer),
                       .packet = packet,
                       .events = events,
                       .missing = stream->missing,
                       .missing_before = stream->missing_sealed,
                       .written = {}});
    stream->missing_sealed = stream->missing;
  }
}

void CpuStreams::Write() {
  for (Sealed& sealed : sealed_) {
    sealed.written = store_->WritePacket(sealed.stream->handle, sealed.packet);
  }
}

CpuStreams::Settled CpuStreams::Settle() {
  Settled settled;
  // What commits of late needed is kept for the next ones: new memory costs more than the event's copy.
  kept_buffers_ = std::max(sealed_.size(), kept_buffers_ - std::min<size_t>(kept_buffers_, 1));
  buffers_.resize(std::min(buffers_.size(), kept_buffers_));
  for (Sealed& sealed : sealed_) {
    Stream& stream = *sealed.stream;
    if (buffers_.size() < kept_buffers_) buffers_.push_back(std::move(sealed.buffer));
    stream.missing_settled = sealed.missing;
    if (sealed.written) {
      settled.delivered += sealed.events;
      stream.bytes = store_->state(stream.handle).bytes;
      stream.packets = store_->state(stream.handle).packets;
      continue;
    }
    // Its number is the next packet's: readers see its events as discarded, and no gap.
    stream.writer.TakeBack();
    stream.missing_sealed = sealed.missing_before;
    stream.missing += sealed.events;
    stream.missing_settled += sealed.events;
    settled.lost += sealed.events;
    if (settled.status) settled.status = std::move(sealed.written);
  }
  sealed_.clear();
  return settled;
}

bool CpuStreams::pending() const {
  for (const auto& stream : streams_) {
    if (stream != nullptr &&
        (stream->writer.events() > 0 || stream->missing != stream->missing_sealed)) {
      return true;
    }
  }
  return false;
}

std::vector<StreamRecord> CpuStreams::Records() const {
  std::vector<StreamRecord> records;
  for (size_t cpu = 0; cpu < streams_.size(); cpu++) {
    const auto& stream = streams_[cpu];
    if (stream == nullptr) continue;
    records.push_back({.cpu = static_cast<uint32_t>(cpu),
                       .bytes = stream->bytes,
                       .next_sequence = stream->writer.next_sequence(),
                       .discarded = stream->missing_settled});
  }
  return records;
}

uint64_t CpuStreams::packets() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : s->packets;
  return sum;
}

uint64_t CpuStreams::bytes() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : s->bytes;
  return sum;
}

uint64_t CpuStreams::count() const {
  uint64_t count = 0;
  for (const auto& s : streams_) count += s == nullptr ? 0 : 1;
  return count;
}

}  // namespace weft::consumer
