// SPDX-License-Identifier: Apache-2.0
// See cpu_streams.h.
#include "node-agent/consumer/cpu_streams.h"

#include "node-agent/consumer/limits.h"

namespace weft::consumer {

Result<CpuStreams::Stream*> CpuStreams::Open(uint32_t cpu, const StreamRecord& record) {
  WEFT_TRY(prepare_(cpu, record.bytes));
  WEFT_ASSIGN(const size_t handle, store_->AddStream(channel_->name, cpu));
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
  auto stream = std::make_unique<Stream>(config, kPacketCapacity);
  stream->handle = handle;
  stream->missing = record.discarded;
  stream->missing_written = state.last_discarded;
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
  if (!store_->WritePacket((*stream)->handle, (*stream)->writer.Finish(0, time_ns))) {
    (*stream)->writer.TakeBack();
  }
  return true;
}

void CpuStreams::CountMissing(uint32_t cpu, uint64_t events, uint64_t time_ns) {
  if (events == 0) return;
  if (cpu >= streams_.size() || streams_[cpu] == nullptr) {
    if (!Make(cpu, time_ns)) return;
  }
  streams_[cpu]->missing += events;
}

Status CpuStreams::Flush(uint64_t end_time_ns, uint64_t& delivered, uint64_t& lost) {
  Status first;
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    const uint64_t events = stream->writer.events();
    if (events == 0 && stream->missing == stream->missing_written) continue;
    const uint64_t missing = stream->missing;
    const size_t bytes = store_->PacketBytes(stream->handle, stream->writer.bytes());
    Status written =
        store_->WritePacket(stream->handle, stream->writer.Finish(missing, end_time_ns, bytes));
    if (written) {
      delivered += events;
      stream->missing_written = missing;
      continue;
    }
    // Its number is the next packet's: readers see its events as discarded, and no gap.
    stream->writer.TakeBack();
    lost += events;
    stream->missing += events;
    if (first) first = std::move(written);
  }
  return first;
}

bool CpuStreams::pending() const {
  for (const auto& stream : streams_) {
    if (stream != nullptr &&
        (stream->writer.events() > 0 || stream->missing != stream->missing_written)) {
      return true;
    }
  }
  return false;
}

uint64_t CpuStreams::pending_events() const {
  uint64_t sum = 0;
  for (const auto& stream : streams_) sum += stream == nullptr ? 0 : stream->writer.events();
  return sum;
}

std::vector<StreamRecord> CpuStreams::Records() const {
  std::vector<StreamRecord> records;
  for (size_t cpu = 0; cpu < streams_.size(); cpu++) {
    const auto& stream = streams_[cpu];
    if (stream == nullptr) continue;
    records.push_back({.cpu = static_cast<uint32_t>(cpu),
                       .bytes = store_->state(stream->handle).bytes,
                       .next_sequence = stream->writer.next_sequence(),
                       .discarded = stream->missing});
  }
  return records;
}

uint64_t CpuStreams::packets() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : store_->state(s->handle).packets;
  return sum;
}

uint64_t CpuStreams::bytes() const {
  uint64_t sum = 0;
  for (const auto& s : streams_) sum += s == nullptr ? 0 : store_->state(s->handle).bytes;
  return sum;
}

uint64_t CpuStreams::count() const {
  uint64_t count = 0;
  for (const auto& s : streams_) count += s == nullptr ? 0 : 1;
  return count;
}

}  // namespace weft::consumer
