// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/packet_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/ctf/copy.h"

namespace weft::ctf {
namespace {

constexpr uint32_t kMagic = 0xc1fc1fc1;

// Offsets of the values that Finish fills in. They follow magic, uuid, stream_id and
// stream_instance_id.
constexpr size_t kContextOffset = 4 + 16 + 4 + 8;
constexpr size_t kPacketBitsOffset = kContextOffset + 3 * sizeof(uint64_t);

template <typename T>
uint8_t* Put(uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

}  // namespace

PacketWriter::PacketWriter(const StreamConfig& config, size_t capacity)
    : config_(config),
      owned_(std::max(capacity, kMinPacketCapacity)),
      last_time_(config.last_time),
      sequence_(config.first_sequence) {
  UseBuffer(owned_.span());
}

PacketWriter::PacketWriter(const StreamConfig& config, std::span<uint8_t> buffer)
    : config_(config), last_time_(config.last_time), sequence_(config.first_sequence) {
  if (!buffer.empty()) UseBuffer(buffer);
}

void PacketWriter::UseBuffer(std::span<uint8_t> buffer) {
  assert(buffer.size() >= kMinPacketCapacity && events_ == 0);
  buffer_ = buffer.data();
  capacity_ = buffer.size() - kPaddingMaxBytes;
  Reset();
}

void PacketWriter::Reset() {
  at_ = buffer_ + kPacketHeaderBytes;
  events_ = 0;
}

Appended PacketWriter::Refuse(uint64_t last_time, Appended why) {
  last_time_ = last_time;
  return why;
}

Appended PacketWriter::Append(uint64_t time, const Channel& channel, const EventClass& event,
                              std::span<const uint8_t> body, EmptyTexts* texts) {
  if (body.size() + kEventHeaderMaxBytes > capacity_ - static_cast<size_t>(at_ - buffer_)) {
    // weft writes no body that fits into no packet.
    return events_ == 0 ? Appended::kMalformed : Appended::kFull;
  }
  const bool late = time < last_time_;
  if (late) time = last_time_;
  const bool first = events_ == 0;
  const uint64_t last_before = last_time_;
  if (first) last_time_ = time;  // what a reader starts from: the packet's begin
  const uint8_t* in = body.data();
  const uint8_t* end = in + body.size();
  RunResult run{in, PutEventHeader(at_, event.id, last_time_, time)};
  if (!channel.context_plan.steps.empty()) run = RunPlan(channel.context_plan, in, end, run.out);
  if (run.out == nullptr) return Refuse(last_before);
  if (event.plan.verbatim) {
    if (static_cast<size_t>(end - run.in) != event.plan.fixed_size) return Refuse(last_before);
    CopyBytes(run.out, run.in, event.plan.fixed_size);
    run = {end, run.out + event.plan.fixed_size, run.empty};
  } else {
    const EmptyTexts of_contexts = run.empty;
    run = RunPlan(event.plan, run.in, end, run.out, channel.context_plan.texts);
    run.empty |= of_contexts;
  }
  if (run.in != end || run.out == nullptr) return Refuse(last_before);
  if (texts != nullptr) {
    *texts = run.empty;
    if (run.empty != event.empty_texts) return Refuse(last_before, Appended::kOtherTexts);
  }
  if (first) begin_time_ = time;
  last_time_ = time;
  late_ += late ? 1 : 0;
  events_++;
  at_ = run.out;
  return Appended::kOk;
}

std::span<const uint8_t> PacketWriter::Finish(uint64_t discarded_total, uint64_t end_time,
                                              size_t packet_bytes) {
  const uint64_t last = std::max(last_time_, end_time);
  const uint64_t begin = events_ > 0 ? begin_time_ : last;
  const size_t content = bytes();
  const size_t size = std::max(content, packet_bytes);
  assert(size - content <= kPaddingMaxBytes);
  std::memset(at_, 0, size - content);
  uint8_t* out = Put(buffer_, kMagic);
  out = std::copy(config_.trace_uuid.begin(), config_.trace_uuid.end(), out);
  out = Put(out, config_.channel_id);
  out = Put(out, config_.instance_id);
  assert(out == buffer_ + kContextOffset);
  out = Put(out, begin);
  out = Put(out, last);
  out = Put(out, uint64_t{content} * 8);
  assert(out == buffer_ + kPacketBitsOffset);
  out = Put(out, uint64_t{size} * 8);
  out = Put(out, sequence_);
  out = Put(out, discarded_total);
  out = Put(out, config_.cpu_id);
  assert(out == buffer_ + kPacketHeaderBytes);
  last_time_ = last;
  sequence_++;
  Reset();
  return {buffer_, size};
}

void SetPacketBytes(std::span<uint8_t> front, uint64_t bytes) {
  assert(front.size() >= kPacketHeaderBytes);
  Put(front.data() + kPacketBitsOffset, bytes * 8);
}

Result<PacketInfo> ReadPacketInfo(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  PacketInfo info;
  const auto magic = reader.Read<uint32_t>();
  info.trace_uuid = reader.Read<Uuid>();
  info.channel_id = reader.Read<uint32_t>();
  info.instance_id = reader.Read<uint64_t>();
  info.begin = reader.Read<uint64_t>();
  info.end = reader.Read<uint64_t>();
  const auto content_bits = reader.Read<uint64_t>();
  const auto packet_bits = reader.Read<uint64_t>();
  info.sequence = reader.Read<uint64_t>();
  info.discarded = reader.Read<uint64_t>();
  info.cpu_id = reader.Read<uint32_t>();
  if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "packet is shorter than its header");
  if (magic != kMagic) return Fail(ErrorCode::kCorrupt, "no packet: wrong magic number");
  info.content_bytes = content_bits / 8;
  info.packet_bytes = packet_bits / 8;
  if (content_bits % 8 != 0 || packet_bits % 8 != 0 || info.content_bytes < kPacketHeaderBytes ||
      info.packet_bytes < info.content_bytes || info.end < info.begin) {
    return Fail(ErrorCode::kCorrupt, "packet header contradicts itself");
  }
  return info;
}

}  // namespace weft::ctf
