// SPDX-License-Identifier: GPL-2.0-only
// See ring_view.h.
#include "kmod/tests/ring_view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace weft::kmod {
namespace {

constexpr uint64_t kOffsetMask = 0xffffffff;

// acquire: what the head publishes is read after it
uint64_t Load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

}  // namespace

uint64_t SeenRecord::Field(size_t index) const {
  uint64_t value = 0;
  if ((index + 1) * sizeof(value) <= payload.size())
    std::memcpy(&value, payload.data() + index * sizeof(value), sizeof(value));
  return value;
}

RingView::RingView(int fd) : fd_(fd) {
  if (!Read(0, &header_, sizeof(header_))) return;
  if (header_.magic != WEFT_RING_MAGIC || header_.slot_size != sizeof(weft_slot)) {
    problem_ = "no ring header";
    return;
  }
  void* map = ::mmap(nullptr, header_.data_offset, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    problem_ = std::string("mmap: ") + std::strerror(errno);
    return;
  }
  map_ = static_cast<uint8_t*>(map);
  places_.resize(header_.slot_count);
  buffer_.resize(size_t{1} << header_.subbuf_shift);
}

RingView::~RingView() {
  if (map_ != nullptr) ::munmap(map_, header_.data_offset);
}

weft_slot* RingView::slot(uint32_t index) const {
  return reinterpret_cast<weft_slot*>(map_ + header_.slots_offset +
                                      uint64_t{index} * header_.slot_size);
}

bool RingView::Read(uint64_t offset, void* to, size_t bytes) {
  if (::pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes))
    return true;
  problem_ = "pread of " + std::to_string(bytes) + " bytes at " + std::to_string(offset);
  return false;
}

void RingView::Wrong(uint32_t index, const std::string& what) {
  if (problem_.empty())
    problem_ = "slot " + std::to_string(index) + " at " + std::to_string(places_[index].position) +
               ": " + what;
}

uint64_t RingView::DataOffset(uint32_t index, uint64_t sequence) const {
  const uint64_t subbufs = uint64_t{1} << (header_.slot_shift - header_.subbuf_shift);
  return header_.data_offset + (uint64_t{index} << header_.slot_shift) +
         ((sequence % subbufs) << header_.subbuf_shift);
}

weft_subbuf_header RingView::SubbufHeader(uint32_t index, uint64_t sequence) {
  weft_subbuf_header header{};
  Read(DataOffset(index, sequence), &header, sizeof(header));
  return header;
}

// Returns the sequence number of the sub-buffer that `head` is in. The sub-buffer exists as long as
// head is in it. A head in another sub-buffer at the same offset would need a whole turn of the
// ring meanwhile, which is possible in overwrite mode only.
uint64_t RingView::SequenceOfHead(uint32_t index, uint64_t head) {
  return SubbufHeader(index, (head & kOffsetMask) >> header_.subbuf_shift).sequence;
}

uint64_t RingView::Walk(uint32_t index, uint64_t sequence, std::span<const uint8_t> bytes,
                        uint64_t start, const Use& use) {
  Place& place = places_[index];
  uint64_t count = 0;
  uint64_t at = start;
  while (at + sizeof(weft_record) <= bytes.size()) {
    weft_record record;
    std::memcpy(&record, bytes.data() + at, sizeof(record));
    if (record.size == 0) break;
    const uint64_t rounded = (uint64_t{record.size} + 7) & ~uint64_t{7};
    if (record.size < sizeof(record) || at + rounded > bytes.size()) {
      Wrong(index, "record of " + std::to_string(record.size) + " bytes");
      break;
    }
    if (record.time < place.last_time) Wrong(index, "time goes back");
    place.last_time = record.time;
    use(index, {record.time, record.event, record.cpu,
                bytes.subspan(at + sizeof(record), record.size - sizeof(record))});
    at += rounded;
    count++;
  }
  place.position = (sequence << header_.subbuf_shift) + at;
  place.records += count;
  return count;
}

uint64_t RingView::ReadSubbuf(uint32_t index, uint64_t sequence, uint64_t head, const Use& use) {
  Place& place = places_[index];
  const uint64_t head_sequence = SequenceOfHead(index, head);
  const uint64_t within = place.position & ((uint64_t{1} << header_.subbuf_shift) - 1);
  uint64_t end = buffer_.size();
  if (sequence == head_sequence) end = head & (buffer_.size() - 1);
  if (!Read(DataOffset(index, sequence), buffer_.data(), end)) return 0;
  const uint64_t count = Walk(index, sequence, {buffer_.data(), end}, within, use);
  if (sequence != head_sequence) {
    const weft_subbuf_header next = SubbufHeader(index, sequence + 1);
    if (next.sequence != sequence + 1)
      Wrong(index, "sub-buffer " + std::to_string(next.sequence) + " where " +
                       std::to_string(sequence + 1) + " is due");
    else if (next.records_before != place.records)
      Wrong(index, "records_before " + std::to_string(next.records_before) + ", counted " +
                       std::to_string(place.records));
    place.position = ((sequence + 1) << header_.subbuf_shift) + sizeof(weft_subbuf_header);
  }
  return count;
}

uint64_t RingView::Drain(uint32_t index, const Use& use) {
  Place& place = places_[index];
  const uint64_t head = Load(slot(index)->head);
  const uint64_t last = SequenceOfHead(index, head);
  const uint64_t subbufs = uint64_t{1} << (header_.slot_shift - header_.subbuf_shift);
  const uint64_t oldest = last >= subbufs ? last - subbufs + 1 : 0;
  uint64_t sequence = place.position >> header_.subbuf_shift;
  uint64_t count = 0;
  if (sequence < oldest) {
    const weft_subbuf_header header = SubbufHeader(index, oldest);
    if (header_.mode != WEFT_RING_OVERWRITE || header.sequence != oldest)
      Wrong(index, "overwritten");
    overwritten_ += header.records_before - place.records;
    place.records = header.records_before;
    place.position = (oldest << header_.subbuf_shift) + sizeof(weft_subbuf_header);
    sequence = oldest;
  }
  for (; sequence <= last && problem_.empty(); sequence++)
    count += ReadSubbuf(index, sequence, head, use);
  const weft_subbuf_header header = SubbufHeader(index, last);
  if (problem_.empty() && header.records_before + (head >> 32) != place.records)
    Wrong(index, "head counts " + std::to_string(header.records_before + (head >> 32)) +
                     " records, there are " + std::to_string(place.records));
  // release: the copies above were made before the writer may use the room
  __atomic_store_n(&slot(index)->tail, place.position, __ATOMIC_RELEASE);
  return count;
}

uint64_t RingView::DrainAll(const Use& use) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < rings(); i++) count += Drain(i, use);
  return count;
}

uint64_t RingView::Committed() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < rings(); i++) {
    weft_subbuf_header header{};
    const uint64_t head = Load(slot(i)->head);
    const uint64_t offset = DataOffset(i, (head & kOffsetMask) >> header_.subbuf_shift);
    if (::pread(fd_, &header, sizeof(header), static_cast<off_t>(offset)) != sizeof(header))
      return 0;
    sum += header.records_before + (head >> 32);
  }
  return sum;
}

uint64_t RingView::Discarded() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < rings(); i++)
    for (const uint64_t& count : slot(i)->discarded) sum += Load(count);
  return sum + Missed();
}

uint64_t RingView::Missed() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < rings(); i++) sum += Load(slot(i)->missed);
  return sum;
}

}  // namespace weft::kmod
