// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/stream_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace weft::ctf {
namespace {

// Enough for any packet header and context seen in the field.
constexpr size_t kFirstRead = 4096;
constexpr uint32_t kMagic = 0xc1fc1fc1;

// Packets between two sequence numbers, if both are known.
std::optional<uint64_t> Gap(std::optional<uint64_t> before, std::optional<uint64_t> after) {
  if (!before || !after) return std::nullopt;
  return *after - *before - 1;
}

}  // namespace

// Collects the integers that the format itself uses.
class StreamReader::HeaderVisitor : public Visitor {
 public:
  void Integer(const Type& type, uint64_t value) override {
    switch (type.role) {
      case Role::kMagic:
        magic = value;
        break;
      case Role::kStreamClass:
        stream_class = value;
        break;
      case Role::kStreamInstance:
        stream_instance = value;
        break;
      case Role::kBegin:
        packet.begin = value;
        break;
      case Role::kEnd:
        packet.end = value;
        break;
      case Role::kContentSize:
        packet.content_bits = value;
        break;
      case Role::kPacketSize:
        packet.packet_bits = value;
        break;
      case Role::kSequenceNumber:
        packet.sequence = value;
        break;
      case Role::kDiscarded:
        packet.discarded = value;
        break;
      case Role::kEventClass:
        event_class = value;
        break;
      default:
        if (in_uuid_ && uuid_bytes < uuid.size()) uuid[uuid_bytes++] = static_cast<uint8_t>(value);
    }
  }
  void BeginArray(const Type& type, uint64_t) override { in_uuid_ = type.role == Role::kUuid; }
  void EndArray(const Type&) override { in_uuid_ = false; }

  std::optional<uint64_t> magic, stream_class, event_class;
  uint64_t stream_instance = 0;
  Packet packet;
  Uuid uuid{};
  size_t uuid_bytes = 0;

 private:
  bool in_uuid_ = false;
};

StreamReader::StreamReader(const TraceClass& trace, std::string file, UniqueFd fd)
    : trace_(trace), file_(std::move(file)), fd_(std::move(fd)) {
  decoder_.SetSavedValues(trace.saved_values);
}

void StreamReader::Problem(std::vector<std::string>& problems, const std::string& what) const {
  problems.push_back(file_ + ", packet at byte " + std::to_string(packet_offset_) + ": " + what);
}

// The buffer becomes up to `bytes` bytes of the file.
bool StreamReader::ReadAt(uint64_t offset, size_t bytes) {
  buffer_.resize(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        ::pread(fd_.get(), buffer_.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  buffer_.resize(done);
  return done > 0;
}

// Decodes header and context at packet_offset_ from what the buffer holds; sets stream_ and packet_.
bool StreamReader::DecodePacketHeader(std::vector<std::string>& problems) {
  HeaderVisitor header;
  decoder_.SetPacket(buffer_);
  const bool decoded = !trace_.packet_header || decoder_.Decode(*trace_.packet_header, header);
  if (!decoded) return Problem(problems, "it is cut off in its header"), false;
  if (header.magic.value_or(kMagic) != kMagic) {
    return Problem(problems, "it does not begin with CTF's magic number"), false;
  }
  if (header.uuid_bytes == 16 && trace_.uuid && header.uuid != *trace_.uuid) {
    return Problem(problems, "it belongs to another trace (UUID)"), false;
  }
  const auto found =
      header.stream_class ? trace_.streams.find(*header.stream_class) : trace_.streams.begin();
  if (found == trace_.streams.end()) {
    return Problem(problems, "the metadata has no such stream"), false;
  }
  if (stream_ != nullptr && stream_ != &found->second) {
    return Problem(problems, "its stream is not that of the packets before it"), false;
  }
  stream_ = &found->second;
  instance_id_ = header.stream_instance;
  packet_context_at_ = decoder_.position();
  decoder_.set_clock(0);
  if (stream_->packet_context && !decoder_.Decode(*stream_->packet_context, header)) {
    return Problem(problems, "it is cut off in its context"), false;
  }
  packet_ = header.packet;
  return true;
}

bool StreamReader::ReadWholePacket(std::vector<std::string>& problems) {
  struct stat st{};
  if (::fstat(fd_.get(), &st) != 0) return Problem(problems, "cannot be read"), false;
  const uint64_t left = static_cast<uint64_t>(st.st_size) - packet_offset_;
  const uint64_t bits = packet_.packet_bits.value_or(left * 8);
  const uint64_t content = packet_.content_bits.value_or(bits);
  const uint64_t header_end = decoder_.position();
  if (bits % 8 != 0 || content > bits || content < header_end) {
    return Problem(problems, "its sizes contradict each other"), false;
  }
  if (bits / 8 > left) return Problem(problems, "it is cut off"), false;
  if (bits / 8 > kMaxPacketBytes) return Problem(problems, "it is too large to be read"), false;
  if (!ReadAt(packet_offset_, bits / 8) || buffer_.size() != bits / 8) {
    return Problem(problems, "it cannot be read"), false;
  }
  packet_.packet_bits = bits;
  return DecodePacketHeader(problems) && (decoder_.SetContentBits(content), true);
}

// False: the stream ends here.
bool StreamReader::OpenPacket(std::vector<std::string>& problems) {
  if (!ReadAt(packet_offset_, kFirstRead)) return false;
  if (!DecodePacketHeader(problems) || !ReadWholePacket(problems)) return false;
  if (!packet_.packet_bits) packet_.packet_bits = uint64_t{buffer_.size()} * 8;
  // The end time moved the clock: events go on from the begin.
  if (packet_.begin) decoder_.set_clock(*packet_.begin);
  next_event_at_ = decoder_.position();
  discarded_packets_noted_ = false;
  discarded_events_noted_ = false;
  state_ = State::kEvents;
  return true;
}

// Whether item_ is now a count of what is missing between the previous packet and this one.
bool StreamReader::NoteDiscarded() {
  const ClockClass& clock = trace_.clock;
  const auto begin_of_gap = previous_ ? previous_->end : packet_.begin;
  item_ = {};
  item_.time_ns = clock.ToNs(begin_of_gap.value_or(0));
  if (!std::exchange(discarded_events_noted_, true) && packet_.discarded) {
    item_.kind = ItemKind::kDiscardedEvents;
    item_.end_ns = clock.ToNs(packet_.end.value_or(0));
    if (previous_ && previous_->discarded) item_.count = *packet_.discarded - *previous_->discarded;
    if (item_.count.value_or(*packet_.discarded) != 0) return true;
  }
  if (!std::exchange(discarded_packets_noted_, true) && previous_) {
    item_.kind = ItemKind::kDiscardedPackets;
    item_.end_ns = clock.ToNs(packet_.begin.value_or(0));
    item_.count = Gap(previous_->sequence, packet_.sequence);
    if (item_.count.value_or(0) != 0) return true;
  }
  return false;
}

// Decodes one event without telling anybody, to know that it is whole and where it ends.
bool StreamReader::NextEvent(std::vector<std::string>& problems) {
  decoder_.set_position(next_event_at_);
  if (decoder_.AtEnd()) return false;
  HeaderVisitor header;
  if (stream_->event_header && !decoder_.Decode(*stream_->event_header, header)) {
    return Problem(problems, "an event is cut off in its header"), false;
  }
  const auto found =
      header.event_class ? stream_->events.find(*header.event_class) : stream_->events.begin();
  if (found == stream_->events.end()) {
    return Problem(problems,
                   "an event has the unknown id " + std::to_string(header.event_class.value_or(0))),
           false;
  }
  const EventRecordClass& event = found->second;
  Visitor nobody;
  const auto pass = [&](const std::optional<Type>& type, uint64_t& at) {
    at = decoder_.position();
    return !type || decoder_.Decode(*type, nobody);
  };
  if (!pass(stream_->event_context, stream_context_at_) ||
      !pass(event.context, event_context_at_) || !pass(event.payload, payload_at_)) {
    return Problem(problems, "an event '" + event.name + "' is cut off"), false;
  }
  if (decoder_.position() == next_event_at_) {
    return Problem(problems, "an event '" + event.name + "' has no bytes"), false;
  }
  next_event_at_ = decoder_.position();
  item_ = {};
  item_.time_ns = trace_.clock.ToNs(decoder_.clock());
  item_.event = &event;
  return true;
}

bool StreamReader::Next(std::vector<std::string>& problems) {
  while (state_ != State::kEnd) {
    if (state_ == State::kPacketStart && !OpenPacket(problems)) {
      state_ = State::kEnd;
      break;
    }
    if (NoteDiscarded() || NextEvent(problems)) return true;
    packet_offset_ += *packet_.packet_bits / 8;
    previous_ = packet_;
    state_ = State::kPacketStart;
  }
  buffer_ = {};
  return false;
}

bool StreamReader::Visit(Scope scope, Visitor& visitor) {
  const std::optional<Type>* type = nullptr;
  uint64_t at = 0;
  switch (scope) {
    case Scope::kPacketContext:
      type = &stream_->packet_context;
      at = packet_context_at_;
      break;
    case Scope::kStreamContext:
      type = &stream_->event_context;
      at = stream_context_at_;
      break;
    case Scope::kEventContext:
      type = &item_.event->context;
      at = event_context_at_;
      break;
    case Scope::kPayload:
      type = &item_.event->payload;
      at = payload_at_;
      break;
  }
  if (!*type) return false;
  const uint64_t clock = decoder_.clock();
  decoder_.set_position(at);
  const bool decoded = decoder_.Decode(**type, visitor);
  decoder_.set_clock(clock);
  return decoded;
}

}  // namespace weft::ctf
