// SPDX-License-Identifier: Apache-2.0
// See slot_reader.h.
#include "lib/ring/slot_reader.h"

#include <array>
#include <string>

#include "lib/ring/reader_limits.h"

namespace weft::ring {
namespace {

constexpr uint64_t kHeaderBytes = sizeof(weft_subbuf_header);
// No honest counter comes near; sums of what is below it do not wrap.
constexpr uint64_t kMaxCount = uint64_t{1} << 62;

// Returns the word that records of one run share: size, event and CPU.
uint64_t FirstWord(const uint8_t* record) {
  static_assert(offsetof(weft_record, time) == sizeof(uint64_t));
  uint64_t word;
  std::memcpy(&word, record, sizeof(word));
  return word;
}

}  // namespace

SlotReader::SlotReader(const RingSet& ring, uint32_t slot)
    : ring_(&ring),
      geometry_(&ring.geometry()),
      slot_(slot),
      shift_(geometry_->subbuf_shift),
      mask_(geometry_->subbuf_bytes() - 1),
      max_record_(geometry_->max_record()) {}

std::unexpected<Error> SlotReader::Corrupt(const char* why) {
  why_ = why;
  return Fail(ErrorCode::kCorrupt, "slot " + std::to_string(slot_) + ": " + why);
}

uint64_t SlotReader::DataOffset(uint64_t position) const {
  const uint64_t subbuf = (position >> shift_) & (geometry_->subbufs() - 1);
  return geometry_->data_offset + (uint64_t{slot_} << geometry_->slot_shift) + (subbuf << shift_) +
         (position & mask_);
}

Status SlotReader::Resume(const SlotState& state) {
  const uint64_t offset = state.position & mask_;
  if ((offset != 0 && offset < kHeaderBytes) || offset % 8 != 0 || state.position > kMaxCount ||
      state.accounted > kMaxCount || state.in_subbuf > state.accounted ||
      state.skipped > state.accounted) {
    return Corrupt("no position of a reader");
  }
  state_ = state;
  end_ = state.position;
  end_records_ = state.in_subbuf;
  last_head_ = ~uint64_t{0};
  // It may have stood at a frontier it had just jumped to.
  jumped_ = geometry_->overwrite() && offset == 0;
  return {};
}

Status SlotReader::ResumeAtTail() {
  const uint64_t tail = ring_->LoadTail(slot_);
  if (tail <= kHeaderBytes) return {};
  if (tail % 8 != 0 || tail > kMaxCount) return Corrupt("tail");
  WEFT_TRY(Resume({.position = tail & ~mask_}));
  skip_below_ = tail;
  jumped_ = true;
  return {};
}

Status SlotReader::CheckHeadWord(uint64_t head) {
  const uint64_t offset = head & 0xffffffff;
  const uint64_t in = offset & mask_;
  if (offset >= geometry_->slot_bytes() || in < kHeaderBytes || in % 8 != 0 || in > mask_ - 7 ||
      (head >> 32) > (in - kHeaderBytes) / sizeof(weft_record)) {
    return Corrupt("head");
  }
  return {};
}

Status SlotReader::Look() {
  const uint64_t head = ring_->LoadHead(slot_);
  if (!geometry_->overwrite()) {
    if (head == last_head_ || head == 0) return {};
    return LookDiscard(head);
  }
  if (head == 0 || (head == last_head_ && ring_->LoadFrontier(slot_) == frontier_)) return {};
  return LookOverwrite();
}

// In discard mode an honest writer stays within `subbufs` sub-buffers of the reader, so the index
// of the sub-buffer tells its sequence; the header, read when the sub-buffer is entered, must
// agree.
Status SlotReader::LookDiscard(uint64_t head) {
  WEFT_TRY(CheckHeadWord(head));
  const uint64_t index = (head & 0xffffffff) >> shift_;
  const uint64_t n = geometry_->subbufs();
  const uint64_t known = end_ >> shift_;
  return SetHead(known + ((index - known) & (n - 1)), head);
}

// R1: only a header that was the same before and after tells which sequence the head belongs to.
Status SlotReader::LookOverwrite() {
  for (int i = 0; i < kHeadTries; i++) {
    const uint64_t head = ring_->LoadHead(slot_);
    WEFT_TRY(CheckHeadWord(head));
    const uint64_t index = (head & 0xffffffff) >> shift_;
    weft_subbuf_header before;
    weft_subbuf_header after;
    const uint64_t offset = DataOffset(index << shift_);
    WEFT_TRY(ring_->ReadAt(offset, {reinterpret_cast<uint8_t*>(&before), sizeof(before)}));
    const uint64_t again = ring_->LoadHead(slot_);
    if ((again & 0xffffffff) >> shift_ != index) continue;
    WEFT_TRY(CheckHeadWord(again));
    WEFT_TRY(ring_->ReadAt(offset, {reinterpret_cast<uint8_t*>(&after), sizeof(after)}));
    if (before.sequence != after.sequence) continue;
    if ((before.sequence & (geometry_->subbufs() - 1)) != index ||
        before.sequence > (kMaxCount >> shift_)) {
      return Corrupt("a sub-buffer's sequence");
    }
    WEFT_TRY(SetHead(before.sequence, again));
    const uint64_t frontier = ring_->LoadFrontier(slot_);
    frontier_ = frontier;
    return frontier > state_.position ? SkipOverwritten(frontier) : Status{};
  }
  return {};
}

Status SlotReader::SetHead(uint64_t sequence, uint64_t head) {
  const uint64_t end = (sequence << shift_) | (head & mask_);
  if (end < end_ || end < state_.position) return Corrupt("head went back");
  if ((end >> shift_) == (end_ >> shift_) && (head >> 32) < end_records_) {
    return Corrupt("head's count went back");
  }
  end_ = end;
  end_records_ = head >> 32;
  last_head_ = head;
  stale_ = false;
  return {};
}

// Skips records below `frontier`: the writer announced that it may store there, so those that were
// not copied are lost.
Status SlotReader::SkipOverwritten(uint64_t frontier) {
  if ((frontier & mask_) != 0 || frontier > kMaxCount) return Corrupt("frontier");
  DropCopy();
  needed_ = 0;
  fetched_ = false;
  if (frontier > end_) {
    stale_ = true;
    last_head_ = ~uint64_t{0};
    return {};
  }
  state_.position = frontier;
  state_.in_subbuf = 0;
  jumped_ = true;
  return {};
}

// Returns where the records of position's sub-buffer end, as far as is known, as an offset in it.
uint64_t SlotReader::Limit() const {
  return (state_.position >> shift_) == (end_ >> shift_) ? (end_ & mask_) : mask_ + 1;
}

uint64_t SlotReader::wanted() const {
  if (stale_ || state_.position >= end_) return 0;
  return Limit() - (state_.position & mask_);
}

Status SlotReader::Copy(std::span<uint8_t> buffer) {
  if (wanted() == 0) return {};
  fetched_ = false;
  DropCopy();
  // A new slot's reader starts behind the first header; that header is checked as well, once.
  if (state_.position == kHeaderBytes && needed_ == 0) state_.position = 0;
  needed_ = 0;
  const uint64_t position = state_.position;
  const uint64_t bytes = std::min<uint64_t>(buffer.size(), wanted());
  WEFT_TRY(ring_->ReadAt(DataOffset(position), buffer.first(bytes)));
  if (geometry_->overwrite()) {
    const uint64_t frontier = ring_->LoadFrontier(slot_);
    if (frontier > position) return SkipOverwritten(frontier);
  }
  chunk_ = buffer.data();
  chunk_bytes_ = bytes & ~uint64_t{7};
  if ((position & mask_) == 0) {
    if (bytes < kHeaderBytes) return Corrupt("a sub-buffer shorter than its header");
    weft_subbuf_header header;
    std::memcpy(&header, chunk_, sizeof(header));
    WEFT_TRY(EnterSubbuf(header, position >> shift_));
  }
  return skip_below_ == 0 ? Status{} : SkipRead();
}

// Returns the end of the records from at_ on that have `rounded` bytes each and begin with `word0`.
uint64_t SlotReader::EndOfAlike(uint64_t word0, uint64_t rounded) const {
  const uint8_t* at = chunk_ + at_;
  const uint8_t* const end = chunk_ + chunk_bytes_;
  uint64_t last_time = last_time_;
  while (static_cast<uint64_t>(end - at) >= rounded) {
    const uint64_t time = AlikeRecords::Time(at);
    if (FirstWord(at) != word0 || time < last_time) break;
    last_time = time;
    at += rounded;
  }
  return static_cast<uint64_t>(at - chunk_);
}

CopiedRun SlotReader::LookThroughCopy() {
  CopiedRun run{.last_time = last_time_};
  uint64_t at = at_;
  weft_record header;
  while (chunk_bytes_ - at >= sizeof(header)) {
    std::memcpy(&header, chunk_ + at, sizeof(header));
    const uint64_t rounded = RoundUp8(header.size);
    // A record that Parse will not take, or not from this copy, ends the run.
    if (header.size < sizeof(header) || rounded > chunk_bytes_ - at) break;
    const bool first = at == at_;
    if (first) run.cpu = header.cpu;
    run.one_cpu = (first || run.one_cpu) && header.cpu == run.cpu;
    run.last_time = std::max(run.last_time, header.time);
    at += rounded;
    if (!first) continue;
    // Most copies are of records that are all alike.
    alike_end_ = EndOfAlike(FirstWord(chunk_ + at_), rounded);
    if (alike_end_ < at) continue;
    at = alike_end_;
    run.last_time = AlikeRecords::Time(chunk_ + at - rounded);
  }
  return run;
}

AlikeRecords SlotReader::Alike(uint64_t to) {
  const uint64_t size = sizeof(weft_record) + record_.body.size();
  const uint64_t rounded = RoundUp8(size);
  if (at_ >= alike_end_) {
    alike_end_ =
        EndOfAlike(size | uint64_t{record_.event} << 32 | uint64_t{record_.cpu} << 48, rounded);
  }
  AlikeRecords alike{.first = chunk_ + at_, .bytes = rounded};
  const auto most = static_cast<uint32_t>(alike_end_ - at_) / static_cast<uint32_t>(rounded);
  const auto none_newer = [&](size_t count) {
    return AlikeRecords::Time(alike.first + (count - 1) * rounded) <= to;
  };
  if (most == 0 || none_newer(most)) {
    alike.count = most;
    return alike;
  }
  // Often only a few come before the next slot's records.
  size_t too_many = 1;
  while (too_many < most && none_newer(too_many)) too_many *= 2;
  alike.count = too_many / 2;
  too_many = std::min<size_t>(too_many, most);
  while (too_many - alike.count > 1) {
    const size_t middle = alike.count + (too_many - alike.count) / 2;
    (none_newer(middle) ? alike.count : too_many) = middle;
  }
  return alike;
}

void SlotReader::AdvanceAlike(const AlikeRecords& alike, size_t count) {
  if (count == 0) return;
  last_time_ = AlikeRecords::Time(alike.first + (count - 1) * alike.bytes);
  const uint64_t bytes = count * alike.bytes;
  state_.position += bytes;
  state_.accounted += count;
  state_.in_subbuf += count;
  at_ += bytes;
}

// R4, and a check of the sub-buffer before it: it must have had as many records as were counted.
Status SlotReader::EnterSubbuf(const weft_subbuf_header& header, uint64_t sequence) {
  if (header.sequence != sequence) return Corrupt("a sub-buffer's sequence");
  // No record is smaller than its header.
  const uint64_t most = (sequence << shift_) / sizeof(weft_record);
  if (header.records_before < state_.accounted || header.records_before > most ||
      (header.records_before != state_.accounted && !jumped_)) {
    return Corrupt("records_before contradicts the records");
  }
  const uint64_t passed = header.records_before - state_.accounted;
  (skip_below_ == 0 ? state_.overwritten : state_.skipped) += passed;
  state_.accounted = header.records_before;
  state_.in_subbuf = 0;
  state_.position += kHeaderBytes;
  at_ = kHeaderBytes;
  jumped_ = false;
  return {};
}

// After ResumeAtTail: counts what an earlier reader took, and does not hand it out.
Status SlotReader::SkipRead() {
  while (state_.position < skip_below_) {
    const Step step = Fetch();
    if (step == Step::kCorrupt) return Corrupt(why_);
    if (step != Step::kRecord) return {};
    Advance();
    state_.skipped++;
  }
  skip_below_ = 0;
  return {};
}

// Handles everything that is not a whole record in the copy.
SlotReader::Step SlotReader::ParseSlow() {
  if (stale_) return Step::kEnd;
  if (state_.position >= end_) {
    // Everything below a head was handed out: its count must agree.
    return state_.in_subbuf == end_records_ ? Step::kEnd
                                            : Bad("head's count contradicts the records");
  }
  const uint64_t left = chunk_bytes_ - at_;
  if (left < sizeof(uint64_t)) return Step::kNeedCopy;
  uint32_t size;
  std::memcpy(&size, chunk_ + at_, sizeof(size));
  if (size == 0) return ParsePad();
  const uint64_t rounded = RoundUp8(size);
  if (size < sizeof(weft_record) || size > max_record_ ||
      (state_.position & mask_) + rounded > Limit()) {
    return Bad("a record's size");
  }
  needed_ = rounded;
  return Step::kNeedCopy;
}

SlotReader::Step SlotReader::ParsePad() {
  if (Limit() <= mask_) return Bad("a pad before head");
  state_.position = (state_.position | mask_) + 1;
  state_.in_subbuf = 0;
  DropCopy();
  return Step::kNeedCopy;
}

uint64_t SlotReader::CountCommitted() const {
  if (state_.position >= end_) return state_.accounted;
  weft_subbuf_header header;
  const Status read = ring_->ReadAt(DataOffset(end_ & ~mask_),
                                    {reinterpret_cast<uint8_t*>(&header), sizeof(header)});
  if (!read || header.sequence != end_ >> shift_ ||
      header.records_before > (header.sequence << shift_) / sizeof(weft_record)) {
    return state_.accounted;
  }
  return std::max(header.records_before + end_records_, state_.accounted);
}

}  // namespace weft::ring
