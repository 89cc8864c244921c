// SPDX-License-Identifier: Apache-2.0
// Reads the records of one slot, in order, steps R1 to R5 of lib/abi/ring.h. Every value that comes
// from the ring is copied once and checked; the reader's own position, never the ring's, says where
// it is. A contradiction is kCorrupt: the caller gives the slot up, and nothing else.
//
// The consumer's thread uses it:
//     Look()                        what is committed now
//     while (Fetch() == kRecord)    use record(); Advance()
//     kNeedCopy                     Copy(a buffer), Fetch() again
//     kEnd                          everything up to the last Look was handed out
// Each call is bounded: by the buffer, or by kHeadTries.
//
// Invariants: position() is where the next record that was not handed out begins; it never goes
// back. accounted() = all records of this slot below position() = handed out + overwritten() +
// skipped.
#ifndef WEFT_LIB_RING_SLOT_READER_H_
#define WEFT_LIB_RING_SLOT_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/result.h"
#include "lib/ring/ring_set.h"

namespace weft::ring {

// The state with which another reader can go on. An owner that outlives readers keeps it.
struct SlotState {
  uint64_t position = sizeof(weft_subbuf_header);
  uint64_t accounted = 0;    // records below position, overwritten ones included
  uint64_t in_subbuf = 0;    // of these, in the sub-buffer of position
  uint64_t overwritten = 0;  // records that the writer took back before they were read
  uint64_t skipped = 0;      // ResumeAtTail: records that another reader took
};

struct RecordView {
  uint64_t time = 0;  // clock; never less than the record's before, see clamped()
  uint16_t event = 0;
  uint16_t cpu = 0;
  std::span<const uint8_t> body;  // contexts and payload; valid until the next Copy
};

// What the records of a copy share, so that they can be handed out together.
struct CopiedRun {
  uint64_t last_time = 0;  // no record that follows in the slot has an earlier one
  uint16_t cpu = 0;
  bool one_cpu = false;  // all of the records at hand are of `cpu`; false if there are none
};

// Records of a copy, one behind the other, that have event, CPU and size in common; no time is
// before its predecessor's.
struct AlikeRecords {
  const uint8_t* first = nullptr;  // its header
  size_t bytes = 0;                // of each, rounded up
  size_t count = 0;

  // Returns a record's time.
  static uint64_t Time(const uint8_t* record) {
    uint64_t time;
    std::memcpy(&time, record + offsetof(weft_record, time), sizeof(time));
    return time;
  }
};

class SlotReader {
 public:
  enum class Step : uint8_t { kRecord, kNeedCopy, kEnd, kCorrupt };

  // `ring` must outlive the reader.
  SlotReader(const RingSet& ring, uint32_t slot);

  // Goes on from a state that a reader of this slot had. kCorrupt: it was none.
  Status Resume(const SlotState& state);
  // Starts behind what `tail` in the ring says was read, by a reader with an unknown state: at the
  // beginning of that sub-buffer, skipping what lies before it. A false tail is the slot's own
  // loss.
  Status ResumeAtTail();

  // R1. After it, end() is what was committed at some moment during the call.
  Status Look();
  // Returns the bytes between position() and end(), headers and pads included.
  [[nodiscard]] uint64_t backlog() const { return end_ - state_.position; }

  // After ResumeAtTail, until the records of the earlier reader are skipped: how many they are is
  // not known yet, and CountCommitted has them, too.
  [[nodiscard]] bool skips() const { return state_.position < skip_below_; }

  // Has the writer overtaken the last Look? Then Fetch returns kEnd until another one succeeds.
  [[nodiscard]] bool stale() const { return stale_; }

  // R2, R3, R4: fills `buffer` from position(), at most to the end of the sub-buffer. A buffer of
  // wanted() bytes always makes progress, and so does one of needed() if that is not 0. The buffer
  // is used until the next Copy.
  Status Copy(std::span<uint8_t> buffer);
  // After kNeedCopy: returns the bytes of the record at position() if its header was copied but not
  // all of it. A smaller buffer for Copy makes no progress. 0: it is not known yet. It is at most
  // the geometry's max_record().
  [[nodiscard]] uint64_t needed() const { return needed_; }
  // Looks through the whole records of the last Copy that were not handed out.
  [[nodiscard]] CopiedRun LookThroughCopy();
  // Returns the bytes that Copy could use at once, at most a sub-buffer.
  [[nodiscard]] uint64_t wanted() const;

  // Finds the record at position(), or returns what is in its way. It may be repeated.
  Step Fetch() { return fetched_ ? Step::kRecord : Parse(); }
  [[nodiscard]] const RecordView& record() const { return record_; }
  void Advance() {
    state_.position += record_bytes_;
    at_ += record_bytes_;
    state_.accounted++;
    state_.in_subbuf++;
    fetched_ = false;
  }

  // After Advance: returns the following records of the copy that are like the one before and not
  // newer than `to`. AdvanceAlike hands out the first `count` of them.
  [[nodiscard]] AlikeRecords Alike(uint64_t to);
  void AdvanceAlike(const AlikeRecords& alike, size_t count);

  [[nodiscard]] const SlotState& state() const { return state_; }
  [[nodiscard]] uint64_t position() const { return state_.position; }
  [[nodiscard]] uint64_t end() const { return end_; }
  [[nodiscard]] uint32_t slot() const { return slot_; }
  // Records whose time was before their predecessor's and was raised.
  [[nodiscard]] uint64_t clamped() const { return clamped_; }
  // Returns the committed records that the slot claims to hold at the last Look. It reads a
  // sub-buffer's header. If that was overwritten meanwhile or cannot be read, it returns
  // state().accounted.
  [[nodiscard]] uint64_t CountCommitted() const;
  [[nodiscard]] const char* why_corrupt() const { return why_; }

 private:
  Step Parse();
  Step ParseSlow();
  Step ParsePad();
  Status SkipRead();
  [[nodiscard]] uint64_t EndOfAlike(uint64_t word0, uint64_t rounded) const;
  void DropCopy() { chunk_bytes_ = at_ = alike_end_ = 0; }
  Step Bad(const char* why) {
    why_ = why;
    return Step::kCorrupt;
  }
  std::unexpected<Error> Corrupt(const char* why);
  Status LookDiscard(uint64_t head);
  Status LookOverwrite();
  Status SetHead(uint64_t sequence, uint64_t head);
  Status SkipOverwritten(uint64_t frontier);
  Status EnterSubbuf(const weft_subbuf_header& header, uint64_t sequence);
  [[nodiscard]] uint64_t DataOffset(uint64_t position) const;
  [[nodiscard]] uint64_t Limit() const;
  Status CheckHeadWord(uint64_t head);

  const RingSet* ring_;
  const Geometry* geometry_;
  uint32_t slot_;
  uint32_t shift_;  // of a sub-buffer
  uint64_t mask_;   // bytes of a sub-buffer - 1
  uint32_t max_record_;

  SlotState state_;
  uint64_t skip_below_ = 0;  // ResumeAtTail: records before this position are skipped
  bool jumped_ = false;      // the next sub-buffer header may be ahead of accounted
  uint64_t end_ = sizeof(weft_subbuf_header);
  uint64_t end_records_ = 0;  // committed in the sub-buffer of end_
  uint64_t last_head_ = WEFT_HEAD_INITIAL;
  uint64_t frontier_ = 0;
  uint64_t last_time_ = 0;
  uint64_t clamped_ = 0;

  const uint8_t* chunk_ = nullptr;  // copy of [position - at_, ...)
  uint64_t chunk_bytes_ = 0;
  uint64_t at_ = 0;
  uint64_t needed_ = 0;
  uint64_t alike_end_ = 0;  // in the copy: those before it are like the one before at_
  RecordView record_;
  uint64_t record_bytes_ = 0;  // rounded up
  bool fetched_ = false;
  bool stale_ = false;  // the writer overtook the last Look, so only a new one helps
  const char* why_ = "";
};

inline SlotReader::Step SlotReader::Parse() {
  const uint64_t left = chunk_bytes_ - at_;
  if (left < sizeof(weft_record)) return ParseSlow();
  weft_record header;
  std::memcpy(&header, chunk_ + at_, sizeof(header));
  const uint64_t rounded = RoundUp8(header.size);
  if (header.size < sizeof(weft_record) || header.size > max_record_ || rounded > left) {
    return ParseSlow();
  }
  record_bytes_ = rounded;
  clamped_ += header.time < last_time_ ? 1 : 0;
  last_time_ = std::max(last_time_, header.time);
  record_.time = last_time_;
  record_.event = header.event;
  record_.cpu = header.cpu;
  record_.body = {chunk_ + at_ + sizeof(header), header.size - sizeof(header)};
  fetched_ = true;
  return Step::kRecord;
}

}  // namespace weft::ring

#endif  // WEFT_LIB_RING_SLOT_READER_H_
