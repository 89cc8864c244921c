// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/stream_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace weft::ctf {
namespace {

// This is enough for any packet header and context seen in practice.
constexpr size_t kFirstRead = 4096;
constexpr uint32_t kMagic = 0xc1fc1fc1;

// Most packets of one file that are sorted by time; each takes 16 bytes of memory.
constexpr size_t kMaxOrderedPackets = 1'000'000;

// Do packets have this time with all its bits?
bool HasLong(Role role, const DataStreamClass& stream) {
  return stream.packet_context &&
         std::ranges::any_of(stream.packet_context->members, [role](const Member& member) {
           return member.type.role == role && member.type.bits == 64;
         });
}

// Packets between two sequence numbers, if both are known and the second is the greater one.
std::optional<uint64_t> Gap(std::optional<uint64_t> before, std::optional<uint64_t> after) {
  if (!before || !after || *after <= *before) return std::nullopt;
  return *after - *before - 1;
}

}  // namespace

// Collects the integers that the format itself uses in a packet's header and context.
class StreamReader::HeaderVisitor final : public Visitor {
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
      default:
        if (in_uuid_ && uuid_bytes < uuid.size()) uuid[uuid_bytes++] = static_cast<uint8_t>(value);
    }
  }
  void Blob(const Type& type, std::span<const uint8_t> bytes) override {
    if (type.role != Role::kUuid || bytes.size() != uuid.size()) return;
    std::ranges::copy(bytes, uuid.begin());
    uuid_bytes = uuid.size();
  }
  void BeginArray(const Type& type, uint64_t) override { in_uuid_ = type.role == Role::kUuid; }
  void EndArray(const Type&) override { in_uuid_ = false; }

  std::optional<uint64_t> magic, stream_class, stream_instance;
  Packet packet;
  Uuid uuid{};
  size_t uuid_bytes = 0;

 private:
  bool in_uuid_ = false;
};

// The class of an event.
class StreamReader::EventHeaderVisitor final : public Visitor {
 public:
  void Integer(const Type& type, uint64_t value) override {
    if (type.role == Role::kEventClass) event_class = value;
  }

  std::optional<uint64_t> event_class;
};

StreamReader::StreamReader(const TraceClass& trace, std::string file, UniqueFd fd)
    : trace_(&trace), file_(std::move(file)), fd_(std::move(fd)), time_order_(trace) {
  decoder_.SetSavedValues(trace.saved_values);
}

void StreamReader::Continue(const TraceClass& trace, UniqueFd fd, uint64_t offset) {
  trace_ = &trace;
  decoder_.SetSavedValues(trace.saved_values);
  fd_ = std::move(fd);
  fd_begins_ = offset;
  stream_ = nullptr;
  last_class_ = nullptr;
  order_.clear();
  state_ = State::kStart;
}

void StreamReader::Continue(std::string file, UniqueFd fd) {
  Continue(*trace_, std::move(fd), size());
  later_file_ = std::move(file);
}

std::optional<StreamReader::Identity> StreamReader::Identify() {
  HeaderVisitor header;
  std::string problem;
  if (!ReadAt(0, kFirstRead) || !DecodeHeaderFields(header, problem)) return std::nullopt;
  const bool has_begin = packet_.begin && HasLong(Role::kBegin, *stream_);
  const uint64_t stream_class = stream_->id;
  stream_ = nullptr;
  decoder_.set_clock(0);
  if (!header.stream_instance || !has_begin) return std::nullopt;
  return Identity{
      .stream_class = stream_class, .instance = *header.stream_instance, .begin = *packet_.begin};
}

void StreamReader::Problem(std::vector<std::string>& problems, const std::string& what) const {
  const bool is_later = !later_file_.empty();
  problems.push_back((is_later ? later_file_ : file_) + ", packet at byte " +
                     std::to_string(packet_offset_ - (is_later ? fd_begins_ : 0)) + ": " + what);
}

// Reads up to `bytes` bytes of the file into the buffer.
bool StreamReader::ReadAt(uint64_t offset, size_t bytes) {
  buffer_.resize(bytes);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd_.get(), buffer_.data() + done, bytes - done,
                              static_cast<off_t>(offset - fd_begins_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  buffer_.resize(done);
  return done > 0;
}

uint64_t StreamReader::size() const {
  struct stat st{};
  return ::fstat(fd_.get(), &st) == 0 ? fd_begins_ + static_cast<uint64_t>(st.st_size) : 0;
}

// Returns kNoTime if there is no such time.
int64_t StreamReader::ToNs(std::optional<uint64_t> cycles) const {
  if (!cycles || !stream_->clock) return kNoTime;
  return stream_->clock->ToNs(*cycles).value_or(kNoTime);
}

// Decodes header and context of the packet in the buffer; sets stream_, instance_id_ and packet_.
bool StreamReader::DecodeHeaderFields(HeaderVisitor& header, std::string& problem) {
  decoder_.SetPacket(buffer_);
  const bool decoded = !trace_->packet_header || decoder_.Decode(*trace_->packet_header, header);
  if (!decoded) return problem = "it is cut off in its header", false;
  if (header.magic.value_or(kMagic) != kMagic) {
    return problem = "it does not begin with CTF's magic number", false;
  }
  if (!header.stream_class && trace_->streams.size() > 1) {
    return problem = "it does not say which of the metadata's streams it belongs to", false;
  }
  const auto found =
      header.stream_class ? trace_->streams.find(*header.stream_class) : trace_->streams.begin();
  if (found == trace_->streams.end()) return problem = "the metadata has no such stream", false;
  if (stream_ != nullptr && stream_ != &found->second) {
    return problem = "its stream is not that of the packets before it", false;
  }
  if (stream_ == nullptr) event_header_ = EventHeader(found->second.event_header);
  stream_ = &found->second;
  instance_id_ = header.stream_instance.value_or(0);
  packet_context_at_ = decoder_.position();
  if (stream_->packet_context && !decoder_.Decode(*stream_->packet_context, header)) {
    return problem = "it is cut off in its context", false;
  }
  packet_ = header.packet;
  if (packet_.begin) packet_.begin = decoder_.clock();  // all bits of it
  return true;
}

bool StreamReader::DecodePacketHeader(std::vector<std::string>& problems) {
  HeaderVisitor header;
  std::string problem;
  const uint64_t clock = decoder_.clock();
  const bool decoded = DecodeHeaderFields(header, problem);
  if (!decoded) return Problem(problems, problem), false;
  if (header.uuid_bytes == 16 && trace_->uuid) {
    if (!uuid_ && header.uuid != *trace_->uuid) {
      Problem(problems,
              "its UUID is not the metadata's: it may belong to another trace, and what is shown "
              "of it may be wrong");
    }
    if (header.uuid != uuid_.value_or(header.uuid) && header.uuid != *trace_->uuid) {
      return Problem(problems, "it belongs to another trace (UUID)"), false;
    }
    uuid_ = header.uuid;
  }
  decoder_.set_clock(clock);
  return true;
}

// Returns the bits of the packet whose header was decoded, `left` bytes before the file's end.
// std::nullopt: its sizes contradict each other.
std::optional<uint64_t> StreamReader::PacketBits(uint64_t left) const {
  const uint64_t bits = packet_.packet_bits.value_or(packet_.content_bits.value_or(left * 8));
  const uint64_t content = packet_.content_bits.value_or(bits);
  if (bits % 8 != 0 || content > bits || content < decoder_.position()) return std::nullopt;
  return bits;
}

bool StreamReader::ReadWholePacket(std::vector<std::string>& problems) {
  const uint64_t left = size() - packet_offset_;
  const std::optional<uint64_t> bits = PacketBits(left);
  if (!bits) return Problem(problems, "its sizes contradict each other"), false;
  if (*bits / 8 > left) return Problem(problems, "it is cut off"), false;
  if (*bits / 8 > kMaxPacketBytes) return Problem(problems, "it is too large to be read"), false;
  if (!ReadAt(packet_offset_, *bits / 8) || buffer_.size() != *bits / 8) {
    return Problem(problems, "it cannot be read"), false;
  }
  HeaderVisitor header;
  std::string problem;
  if (!DecodeHeaderFields(header, problem)) return Problem(problems, problem), false;
  decoder_.SetContentBits(packet_.content_bits.value_or(*bits));
  packet_.packet_bits = bits;
  return true;
}

// Sorts the packets by time: a file may have them in another order. Times of less than 64 bits
// wrap, and give no order.
void StreamReader::OrderPackets() {
  std::vector<std::pair<uint64_t, uint64_t>> packets;  // begin, offset
  bool ordered = true;
  const uint64_t file_size = size();
  for (packet_offset_ = fd_begins_;
       packet_offset_ < file_size && packets.size() < kMaxOrderedPackets;) {
    HeaderVisitor header;
    std::string problem;
    decoder_.set_clock(0);
    if (!ReadAt(packet_offset_, kFirstRead) || !DecodeHeaderFields(header, problem)) break;
    const std::optional<uint64_t> bits = PacketBits(file_size - packet_offset_);
    if (!bits || *bits / 8 > file_size - packet_offset_ || !packet_.begin ||
        !HasLong(Role::kBegin, *stream_)) {
      break;
    }
    ordered = ordered && (packets.empty() || packets.back().first <= *packet_.begin);
    packets.emplace_back(*packet_.begin, packet_offset_);
    packet_offset_ += *bits / 8;
  }
  if (!ordered) {
    const uint64_t rest = packet_offset_;
    std::ranges::sort(packets);
    for (const auto& [begin, offset] : packets) order_.push_back(offset);
    order_.push_back(rest);  // what could not be ordered comes last, as it lies in the file
  }
  packet_offset_ = order_.empty() ? fd_begins_ : order_.front();
  decoder_.set_clock(0);
  stream_ = nullptr;
}

// Goes to where the packet behind the current one begins, if there is one.
void StreamReader::NextPacket() {
  if (packet_.end) decoder_.set_clock(*packet_.end);
  previous_ = packet_;
  if (order_.size() > 1) {
    order_.pop_front();
    packet_offset_ = order_.front();
  } else {
    packet_offset_ += packet_.packet_bits.value_or(uint64_t{buffer_.size()} * 8) / 8;
  }
}

void StreamReader::CheckPacketTimes(std::vector<std::string>& problems) {
  if (!stream_->clock) return;
  const auto whole = [this](Role role, std::optional<uint64_t> time) {
    return HasLong(role, *stream_) ? time : std::nullopt;
  };
  const std::string wrong = time_order_.Packet(*stream_->clock, whole(Role::kBegin, packet_.begin),
                                               whole(Role::kEnd, packet_.end), packet_offset_);
  if (!wrong.empty()) Problem(problems, wrong);
}

// Returns false if the stream ends here.
bool StreamReader::OpenPacket(std::vector<std::string>& problems) {
  if (!ReadAt(packet_offset_, kFirstRead)) return false;
  if (!DecodePacketHeader(problems)) return false;
  if (!stream_->unreadable.empty()) return false;  // the metadata's problems name it
  if (!ReadWholePacket(problems)) return false;
  CheckPacketTimes(problems);
  next_event_at_ = decoder_.position();
  discarded_packets_noted_ = false;
  discarded_events_noted_ = false;
  state_ = State::kEvents;
  return true;
}

// Makes item_ a count of what is missing between the previous packet and this one. Returns false if
// nothing is.
bool StreamReader::NoteDiscarded() {
  if (discarded_events_noted_ && discarded_packets_noted_) return false;
  const bool follows = previous_ && !time_order_.goes_back();
  const auto begin_of_gap = follows ? previous_->end : packet_.begin;
  item_ = {};
  item_.time_ns = ToNs(begin_of_gap);
  if (!std::exchange(discarded_events_noted_, true) && packet_.discarded) {
    item_.kind = ItemKind::kDiscardedEvents;
    item_.end_ns = ToNs(packet_.end);
    // A counter that went back began anew.
    if (previous_ && previous_->discarded && *previous_->discarded <= *packet_.discarded) {
      item_.count = *packet_.discarded - *previous_->discarded;
    }
    if (item_.count.value_or(*packet_.discarded) != 0) return true;
  }
  if (!std::exchange(discarded_packets_noted_, true) && previous_) {
    item_.kind = ItemKind::kDiscardedPackets;
    item_.end_ns = ToNs(packet_.begin);
    item_.count = Gap(previous_->sequence, packet_.sequence);
    if (item_.count.value_or(0) != 0) return true;
  }
  return false;
}

void StreamReader::NoteUnreadable(const EventRecordClass& event,
                                  std::vector<std::string>& problems) {
  if (unreadable_packets_++ > 0) return;
  Problem(problems, "an event '" + event.name +
                        "' cannot be decoded (see the metadata's problem): neither it nor what "
                        "follows it in its packet is shown");
}

// Returns false if the header is cut off.
bool StreamReader::DecodeEventHeader(std::optional<uint64_t>& event_class) {
  const uint64_t at = event_header_.Aligned(decoder_.position());
  uint64_t word = 0;
  const EventHeader::Form* form = decoder_.Peek(at, word) ? event_header_.Find(word) : nullptr;
  if (form == nullptr) {
    EventHeaderVisitor header;
    if (stream_->event_header && !decoder_.Decode(*stream_->event_header, header)) return false;
    event_class = header.event_class;
    return true;
  }
  const EventHeader::Field& tag = event_header_.tag();
  if (tag.bits != 0) decoder_.Save(event_header_.tag_saved(), tag.In(word));
  if (form->time.bits != 0) decoder_.MoveClock(form->time.In(word), form->time.bits);
  decoder_.set_position(at + form->bits);
  event_class = form->event_class.In(word);
  return true;
}

// Decodes one event without a visitor's output, to learn whether it is whole and where it ends.
bool StreamReader::NextEvent(std::vector<std::string>& problems) {
  decoder_.set_position(next_event_at_);
  if (decoder_.AtEnd()) return false;
  std::optional<uint64_t> event_class;
  if (!DecodeEventHeader(event_class)) {
    return Problem(problems, "an event is cut off in its header"), false;
  }
  if (!event_class && stream_->events.size() > 1) {
    return Problem(problems, "its events do not say which of the metadata's classes they are of"),
           false;
  }
  if (last_class_ == nullptr || event_class != last_class_->id) {
    const auto found = event_class ? stream_->events.find(*event_class) : stream_->events.begin();
    if (found == stream_->events.end()) {
      const std::string id = std::to_string(event_class.value_or(0));
      return Problem(problems, "an event has the unknown id " + id), false;
    }
    last_class_ = &found->second;
  }
  const EventRecordClass& event = *last_class_;
  if (!event.unreadable.empty()) return NoteUnreadable(event, problems), false;
  const auto pass = [&](const std::optional<Type>& type, uint64_t& at) {
    at = decoder_.position();
    return !type || decoder_.Skip(*type);
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
  item_.time_ns = ToNs(decoder_.clock());
  if (item_.time_ns == kNoTime && stream_->clock && !std::exchange(times_overflow_, true)) {
    Problem(problems, "its times lie before 1677 or after 2262 (clock '" + stream_->clock->name +
                          "', offset " + std::to_string(stream_->clock->offset_seconds) +
                          " s): they are not shown");
  }
  item_.event = &event;
  if (stream_->clock) {
    const std::string wrong = time_order_.Event(*stream_->clock, decoder_.clock(), event.name);
    if (!wrong.empty()) Problem(problems, wrong);
  }
  return true;
}

bool StreamReader::Next(std::vector<std::string>& problems) {
  if (state_ == State::kStart) {
    OrderPackets();
    state_ = State::kPacketStart;
  }
  while (state_ != State::kEnd) {
    if (state_ == State::kPacketStart && !OpenPacket(problems)) {
      state_ = State::kEnd;
      break;
    }
    if (NoteDiscarded() || NextEvent(problems)) return true;
    NextPacket();
    state_ = State::kPacketStart;
  }
  if (unreadable_packets_ > 1) {
    problems.push_back(file_ + ": " + std::to_string(unreadable_packets_) +
                       " packets are shown up to such an event only");
  }
  unreadable_packets_ = 0;
  if (time_order_.wrong_packets() > 1 && !std::exchange(wrong_times_counted_, true)) {
    problems.push_back(file_ + ": " + std::to_string(time_order_.wrong_packets()) +
                       " packets have times that go back or are damaged");
  }
  buffer_ = {};
  return false;
}

StreamReader::Part StreamReader::PartOf(Scope scope) const {
  const auto part = [](const std::optional<Type>& type, uint64_t at) {
    return type ? Part{&*type, at} : Part{};
  };
  switch (scope) {
    case Scope::kPacketContext:
      return part(stream_->packet_context, packet_context_at_);
    case Scope::kStreamContext:
      return part(stream_->event_context, stream_context_at_);
    case Scope::kEventContext:
      return part(item_.event->context, event_context_at_);
    case Scope::kPayload:
      return part(item_.event->payload, payload_at_);
  }
  return {};
}

}  // namespace weft::ctf
