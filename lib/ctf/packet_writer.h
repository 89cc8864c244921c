// SPDX-License-Identifier: Apache-2.0
// Makes CTF packets of one stream (channel, CPU) from ring records. The consumer's thread owns it.
// A packet is complete in itself: it goes to a file or over the network as it is. The bytes are the
// same for CTF 1.8 and CTF 2; docs/formats/ctf.md has the layout.
//
// Use:  Append() until kFull or until it is time, Finish(), hand the bytes on, Append() again. The
// bytes that Finish returns stay until the next Append or Finish, or until UseBuffer gives another
// buffer. Readers count discarded events from packet to packet. To count the first ones, too, a
// stream begins with an empty packet: Finish(0, time) before anything else.
//
// Invariants: times in a stream never go back (a record older than the last one gets the last one's
// time, and is counted in late()); a packet begins where the one before it ended, or later;
// sequence numbers go up by one. It allocates nothing after the constructor.
#ifndef WEFT_LIB_CTF_PACKET_WRITER_H_
#define WEFT_LIB_CTF_PACKET_WRITER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/page_buffer.h"
#include "lib/ctf/copy.h"
#include "lib/ctf/event_class.h"
#include "lib/ctf/schema.h"

namespace weft::ctf {

struct StreamConfig {
  Uuid trace_uuid{};
  uint32_t channel_id = 0;
  uint64_t instance_id = 0;  // unique among the channel's streams
  uint32_t cpu_id = 0;
  uint64_t first_sequence = 0;  // of the next packet, when a stream goes on after a restart
  uint64_t last_time = 0;       // end of the last packet written before the restart
};

enum class Appended : uint8_t { kOk, kFull, kMalformed, kOtherTexts };

inline constexpr size_t kPacketHeaderBytes = 84;    // header and context of an empty packet
inline constexpr size_t kEventHeaderMaxBytes = 13;  // the largest event header
inline constexpr size_t kMinPacketCapacity = 128 * 1024;
inline constexpr size_t kDefaultPacketCapacity = 1024 * 1024;
inline constexpr size_t kPaddingMaxBytes =
    PageBuffer::kPageBytes;  // there is always room for so much
// A packet's capacity less this is the largest body for which an empty packet has room.
inline constexpr size_t kPacketOverheadBytes =
    kPacketHeaderBytes + kEventHeaderMaxBytes + kPaddingMaxBytes;

class PacketWriter {
 public:
  // Owns a buffer of `capacity` bytes (at least kMinPacketCapacity), at the beginning of a page.
  explicit PacketWriter(const StreamConfig& config, size_t capacity = kDefaultPacketCapacity);
  // Writes into the caller's buffer, same minimum; an empty one: UseBuffer comes before all else.
  PacketWriter(const StreamConfig& config, std::span<uint8_t> buffer);

  // Call it only between Finish and the next Append.
  void UseBuffer(std::span<uint8_t> buffer);

  // `body` is the record without its header: the channel's contexts, then the payload. kFull: the
  // packet has no room, nothing was written. kMalformed: the body contradicts the class, nothing
  // was written, the caller counts a lost event. With `texts`: *texts becomes the record's empty
  // texts, those of contexts before those of the payload. kOtherTexts: they are not the class's,
  // nothing was written.
  Appended Append(uint64_t time_ns, const Channel& channel, const EventClass& event,
                  std::span<const uint8_t> body, EmptyTexts* texts = nullptr);

  // Appends many events of one class faster than Append; see below.
  class Run;

  // Completes the packet, also an empty one. `discarded_total`: the number of events of this stream
  // discarded so far. `end_time`: nothing older will be appended later (raised to the last event's
  // time). Zeros are added up to `packet_bytes`, which is at most kPaddingMaxBytes more than
  // bytes().
  std::span<const uint8_t> Finish(uint64_t discarded_total, uint64_t end_time_ns,
                                  size_t packet_bytes = 0);

  // Call it if the packet that Finish returned last was stored nowhere and never will be. The next
  // packet gets its number, so that readers count its events (the caller adds them to
  // discarded_total) but see no gap.
  void TakeBack() { sequence_--; }

  [[nodiscard]] uint64_t events() const { return events_; }  // in the current packet
  [[nodiscard]] size_t bytes() const { return static_cast<size_t>(at_ - buffer_); }
  [[nodiscard]] uint64_t first_time() const { return begin_time_; }  // valid if events() > 0
  [[nodiscard]] uint64_t last_time() const { return last_time_; }
  [[nodiscard]] uint64_t next_sequence() const { return sequence_; }
  [[nodiscard]] uint64_t late() const { return late_; }  // records whose time was raised, ever

 private:
  void Reset();
  Appended Refuse(uint64_t last_time, Appended why = Appended::kMalformed);

  StreamConfig config_;
  PageBuffer owned_;
  uint8_t* buffer_ = nullptr;
  uint8_t* at_ = nullptr;
  size_t capacity_ = 0;
  uint64_t events_ = 0;
  uint64_t begin_time_ = 0;
  uint64_t last_time_ = 0;
  uint64_t sequence_ = 0;
  uint64_t late_ = 0;
};

// The form of an event header, in its two lowest bits.
enum HeaderForm : uint32_t { kTiny = 0, kSmall = 1, kMedium = 2, kExtended = 3 };

inline constexpr uint32_t kTinyIds = 64;  // ids and times since the last event that kTiny holds
inline constexpr uint64_t kTinyTimes = 1U << 16;

// Writes the smallest form that holds the id and the time since the last event. A reader completes
// a short time with the last one's upper bits, one carry at most. Returns the address behind it;
// may write up to kEventHeaderMaxBytes.
inline uint8_t* PutEventHeader(uint8_t* out, uint32_t id, uint64_t last_time, uint64_t time) {
  const auto put = [&out](auto value) {
    std::memcpy(out, &value, sizeof(value));
    out += sizeof(value);
  };
  const uint64_t delta = time - last_time;
  const uint32_t first = id << 2;
  if (id < kTinyIds && delta < (1U << 24)) {
    const auto low = static_cast<uint32_t>(time);
    if (delta >= kTinyTimes) {
      put(kSmall | first | low << 8);
      return out;
    }
    put(kTiny | first | (low & 0xffff) << 8);
    return out - 1;  // the fourth byte is overwritten
  }
  if (id < (1U << 14) && delta < (uint64_t{1} << 32)) {
    put(static_cast<uint16_t>(kMedium | first));
    put(static_cast<uint32_t>(time));
    return out;
  }
  put(uint8_t{kExtended});
  put(id);
  put(time);
  return out;
}

// Appends events whose bodies go into the packet unchanged (see CanRun). Append must have taken at
// least one before. The writer itself is used again only after the run was destroyed.
class PacketWriter::Run {
 public:
  // Events of this class can be appended by a run; their bodies have `bytes` bytes.
  static bool CanRun(const Channel& channel, const EventClass& event, size_t bytes) {
    return channel.context_plan.verbatim && event.plan.verbatim &&
           bytes == size_t{channel.context_plan.fixed_size} + event.plan.fixed_size;
  }

  Run(PacketWriter& writer, const EventClass& event, size_t bytes)
      : writer_(&writer),
        id_(event.id),
        bytes_(bytes),
        at_(writer.at_),
        room_end_(writer.buffer_ + writer.capacity_ - bytes - kEventHeaderMaxBytes),
        last_time_(writer.last_time_) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    writer_->at_ = at_;
    writer_->last_time_ = last_time_;
    writer_->events_ += events_;
  }

  // Appends the first of `count` events whose bodies are `stride` bytes apart: those that have room
  // and do not go back in time. Returns how many; Append finds out why the next one is not among
  // them. time_of(const uint8_t* body): its time in nanoseconds.
  template <typename TimeOf>
  size_t Put(const uint8_t* bodies, size_t stride, size_t count, TimeOf time_of) {
    const size_t blocks = (bytes_ + kCopyBlock - 1) / kCopyBlock;
    if (blocks == 2) return PutWith<CopyBlocks<2>>(bodies, stride, count, time_of);
    if (blocks == 3) return PutWith<CopyBlocks<3>>(bodies, stride, count, time_of);
    if (blocks == 4) return PutWith<CopyBlocks<4>>(bodies, stride, count, time_of);
    return PutWith<CopyBytes>(bodies, stride, count, time_of);
  }

 private:
  template <auto kCopy, typename TimeOf>
  size_t PutWith(const uint8_t* body, size_t stride, size_t count, TimeOf time_of);

  PacketWriter* writer_;
  uint32_t id_;
  size_t bytes_;
  uint8_t* at_;
  const uint8_t* room_end_;
  uint64_t last_time_;
  uint64_t events_ = 0;
};

template <auto kCopy, typename TimeOf>
size_t PacketWriter::Run::PutWith(const uint8_t* body, size_t stride, size_t count,
                                  TimeOf time_of) {
  if (at_ > room_end_) return 0;
  // This is the number that fits with the largest headers; a next run takes the rest.
  const auto room = static_cast<size_t>(room_end_ - at_) / (bytes_ + kEventHeaderMaxBytes) + 1;
  count = std::min(count, room);
  // All that most headers differ in is the time's lowest bits.
  const uint32_t tiny = kTiny | id_ << 2;
  const uint64_t tiny_times = id_ < kTinyIds ? kTinyTimes : 0;
  uint8_t* at = at_;
  uint64_t last_time = last_time_;
  size_t done = 0;
  for (; done < count; done++, body += stride) {
    const uint64_t time = time_of(body);
    if (time - last_time < tiny_times) {
      const uint32_t header = tiny | static_cast<uint32_t>(time & (kTinyTimes - 1)) << 8;
      std::memcpy(at, &header, sizeof(header));  // the fourth byte is overwritten
      at += 3;
    } else if (time < last_time) {
      break;
    } else {
      at = PutEventHeader(at, id_, last_time, time);
    }
    kCopy(at, body, bytes_);
    at += bytes_;
    last_time = time;
  }
  at_ = at;
  last_time_ = last_time;
  events_ += done;
  return done;
}

// The values in the fixed front of a packet, for stores and relays that pass packets on.
struct PacketInfo {
  Uuid trace_uuid{};
  uint32_t channel_id = 0;
  uint64_t instance_id = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t content_bytes = 0;
  uint64_t packet_bytes = 0;
  uint64_t sequence = 0;
  uint64_t discarded = 0;
  uint32_t cpu_id = 0;
};

// Reads the first kPacketHeaderBytes. kCorrupt: it is no packet of weft, or its sizes contradict
// each other. Checks nothing behind the header: the packet may be longer than `bytes`.
Result<PacketInfo> ReadPacketInfo(std::span<const uint8_t> bytes);

// Makes a packet whose first kPacketHeaderBytes are in `front` say that it is `bytes` long. The
// caller adds zeros up to that.
void SetPacketBytes(std::span<uint8_t> front, uint64_t bytes);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_PACKET_WRITER_H_
