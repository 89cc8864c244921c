// SPDX-License-Identifier: Apache-2.0
// Reads one stream file: its packets and their events. TraceReader merges several. Thread-safety:
// one thread per reader.
#ifndef WEFT_LIB_CTF_STREAM_READER_H_
#define WEFT_LIB_CTF_STREAM_READER_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ctf/decoder.h"
#include "lib/ctf/event_header.h"
#include "lib/ctf/time_order.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// A packet larger than this is refused: it is read into memory whole.
inline constexpr uint64_t kMaxPacketBytes = 256 * 1024 * 1024;

enum class ItemKind : uint8_t {
  kEvent,
  kDiscardedEvents,   // counted by the tracer, between `time_ns` and `end_ns`
  kDiscardedPackets,  // a gap in the packets' sequence numbers
};

// The time of items without one: before everything else.
inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

struct Item {
  ItemKind kind = ItemKind::kEvent;
  int64_t time_ns = kNoTime;                // since the epoch
  const EventRecordClass* event = nullptr;  // kEvent
  int64_t end_ns = kNoTime;                 // kDiscarded...
  std::optional<uint64_t> count;  // kDiscarded...; none: unknown (before the first packet)
};

// The parts of an event that can be visited.
enum class Scope : uint8_t { kPacketContext, kStreamContext, kEventContext, kPayload };

class StreamReader {
 public:
  // `trace` must outlive the reader.
  StreamReader(const TraceClass& trace, std::string file, UniqueFd fd);

  // Goes to the next item; false at the end. Mistakes in the trace are appended to `problems`.
  bool Next(std::vector<std::string>& problems);

  // What the first packet says of the stream; std::nullopt: there is none that can be read, or it
  // does not say this. Call it before the first Next.
  struct Identity {
    uint64_t stream_class = 0;
    uint64_t instance = 0;
    uint64_t begin = 0;  // in cycles of the stream's clock
  };
  std::optional<Identity> Identify();

  // After Next() returned false: goes on with the stream's next file.
  void Continue(std::string file, UniqueFd fd);

  // After Next() returned false: goes on with the packets in `fd`, which lie in the file from byte
  // `offset` on. `trace`, which must outlive the reader, is what the metadata says now.
  void Continue(const TraceClass& trace, UniqueFd fd, uint64_t offset);

  [[nodiscard]] const Item& item() const { return item_; }
  [[nodiscard]] const TraceClass& trace() const { return *trace_; }
  [[nodiscard]] const DataStreamClass* stream() const { return stream_; }
  [[nodiscard]] uint64_t instance_id() const { return instance_id_; }
  // The stream's first file.
  [[nodiscard]] const std::string& file() const { return file_; }
  // The bytes of the current event behind its header: contexts and payload. Each part of the trace
  // must be aligned to bytes, as weft's are. Valid until the next call of Next.
  [[nodiscard]] std::span<const uint8_t> event_body() const {
    return std::span(buffer_).subspan(stream_context_at_ / 8,
                                      (next_event_at_ - stream_context_at_) / 8);
  }
  // Where the current event ends in its packet, in bytes.
  [[nodiscard]] uint64_t event_end() const { return next_event_at_ / 8; }
  // Returns where the current packet begins in the stream, whose files lie one behind the other.
  [[nodiscard]] uint64_t packet_offset() const { return packet_offset_; }
  // Bytes of the stream's files up to the current one.
  [[nodiscard]] uint64_t size() const;

  // Visits a part of the current event. Returns false if it has no such part. `AnyVisitor`: see
  // Decoder::Decode.
  template <typename AnyVisitor>
  bool Visit(Scope scope, AnyVisitor& visitor) {
    const auto [type, at] = PartOf(scope);
    if (type == nullptr) return false;
    const uint64_t clock = decoder_.clock();
    decoder_.set_position(at);
    const bool decoded = decoder_.Decode(*type, visitor);
    decoder_.set_clock(clock);
    return decoded;
  }

 private:
  class HeaderVisitor;
  class EventHeaderVisitor;

  enum class State : uint8_t { kStart, kPacketStart, kEvents, kEnd };

  struct Part {
    const Type* type = nullptr;  // nullptr: there is no such part
    uint64_t at = 0;             // where it begins, in bits
  };

  [[nodiscard]] Part PartOf(Scope scope) const;
  bool ReadAt(uint64_t offset, size_t bytes);
  void OrderPackets();
  void NextPacket();
  bool DecodeHeaderFields(HeaderVisitor& header, std::string& problem);
  [[nodiscard]] std::optional<uint64_t> PacketBits(uint64_t left) const;
  [[nodiscard]] int64_t ToNs(std::optional<uint64_t> cycles) const;
  void NoteUnreadable(const EventRecordClass& event, std::vector<std::string>& problems);
  bool OpenPacket(std::vector<std::string>& problems);
  bool DecodePacketHeader(std::vector<std::string>& problems);
  bool ReadWholePacket(std::vector<std::string>& problems);
  void CheckPacketTimes(std::vector<std::string>& problems);
  bool NoteDiscarded();
  bool DecodeEventHeader(std::optional<uint64_t>& event_class);
  bool NextEvent(std::vector<std::string>& problems);
  void Problem(std::vector<std::string>& problems, const std::string& what) const;

  const TraceClass* trace_;
  std::string file_;
  std::string later_file_;  // the current one; "": file_
  UniqueFd fd_;
  uint64_t fd_begins_ = 0;  // where the bytes of fd_ lie in the file
  const DataStreamClass* stream_ = nullptr;
  EventHeader event_header_{std::nullopt};  // of stream_
  uint64_t instance_id_ = 0;
  State state_ = State::kStart;
  Item item_;

  std::vector<uint8_t> buffer_;
  uint64_t packet_offset_ = 0;  // of the current packet in the file
  // Offsets of the packets, if their order is not that of their times; the first is the current
  // one.
  std::deque<uint64_t> order_;
  Decoder decoder_;
  std::optional<Uuid> uuid_;         // of the first packet
  uint64_t unreadable_packets_ = 0;  // shown up to an event of an unreadable class only
  bool times_overflow_ = false;
  TimeOrder time_order_;
  bool wrong_times_counted_ = false;
  struct Packet {
    std::optional<uint64_t> begin, end, content_bits, packet_bits, sequence, discarded;
  };
  Packet packet_;
  std::optional<Packet> previous_;
  bool discarded_packets_noted_ = false;
  bool discarded_events_noted_ = false;

  const EventRecordClass* last_class_ =
      nullptr;  // of the event before: most have one of few classes
  // Where the parts of the current packet and event begin, in bits:
  uint64_t packet_context_at_ = 0;
  uint64_t stream_context_at_ = 0;
  uint64_t event_context_at_ = 0;
  uint64_t payload_at_ = 0;
  uint64_t next_event_at_ = 0;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_STREAM_READER_H_
