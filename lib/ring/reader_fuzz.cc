// SPDX-License-Identifier: Apache-2.0
// Everything that a hostile process can put into a ring set: header, slot words, descriptions and
// records, and what it changes between any two steps of the reader. Nothing may crash, hang or read
// out of bounds, and the reader's account of records must stay true.
//
// Input: a byte of options, a byte that is not used, then changes of a small valid ring set, each
// (u16 offset in units of 8 bytes, u8 length, bytes). A length of 0 ends a group of changes: the
// first group is there when the ring set is opened, every other one comes after a step of the
// reader.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/ring/description_reader.h"
#include "lib/ring/slot_reader.h"

namespace {

using weft::ring::RingSet;
using weft::ring::SlotReader;

// A small valid ring set; the input's bytes are laid over it.
constexpr uint64_t kSlots = 192;
constexpr uint64_t kDescriptions = kSlots + 2 * 128;
constexpr uint64_t kDescriptionsSize = 512;
constexpr uint64_t kData = 4096;
constexpr uint64_t kTotal = kData + 2 * 8192;

std::vector<uint8_t> ValidMemory(uint32_t mode) {
  std::vector<uint8_t> memory(kTotal);
  weft_ring_header h{};
  h.magic = WEFT_RING_MAGIC;
  h.major = WEFT_RING_MAJOR;
  h.header_size = sizeof(h);
  h.total_size = kTotal;
  h.slots_offset = kSlots;
  h.descriptions_offset = kDescriptions;
  h.descriptions_size = kDescriptionsSize;
  h.data_offset = kData;
  h.slot_count = 2;
  h.slot_size = 128;
  h.slot_shift = 13;
  h.subbuf_shift = 12;
  h.mode = mode;
  h.clock = WEFT_CLOCK_TSC;
  std::memcpy(memory.data(), &h, sizeof(h));
  return memory;
}

// The bits of the first byte:
constexpr uint8_t kOverwrite = 1;
constexpr uint8_t kResumeAtTail = 2;
constexpr uint8_t kTakeAlike = 4;  // hands out records that are alike together

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

class Changes {
 public:
  Changes(int fd, std::span<const uint8_t> input) : fd_(fd), input_(input) {}

  // Writes the next group into the memory. False: there is none.
  bool Next() {
    if (input_.size() <= 3) return false;
    while (input_.size() > 3) {
      const uint64_t at = (input_[0] | uint64_t{input_[1]} << 8) * 8 % kTotal;
      const size_t n = std::min({size_t{input_[2]}, input_.size() - 3, size_t{kTotal - at}});
      const auto bytes = input_.subspan(3, n);
      input_ = input_.subspan(3 + n);
      if (n == 0) break;
      Require(::pwrite(fd_, bytes.data(), n, static_cast<off_t>(at)) == static_cast<ssize_t>(n));
    }
    return true;
  }

 private:
  int fd_;
  std::span<const uint8_t> input_;
};

// Reads one slot to its end, or to the first contradiction.
class SlotRun {
 public:
  SlotRun(const RingSet& ring, uint32_t slot, uint8_t options, Changes& changes)
      : reader_(ring, slot), options_(options), changes_(&changes) {}

  void Read() {
    if ((options_ & kResumeAtTail) != 0 && !reader_.ResumeAtTail()) return;
    do {
      if (!reader_.Look()) return;
      (void)changes_->Next();
      if (!ReadToEnd()) return;
      Require(reader_.CountCommitted() >= reader_.state().accounted);
    } while (changes_->Next());
  }

 private:
  // Returns false if it met a contradiction.
  bool ReadToEnd() {
    for (int steps = 0; steps < kMaxSteps; steps++) {
      const uint64_t position = reader_.position();
      switch (reader_.Fetch()) {
        case SlotReader::Step::kRecord:
          TakeRecord();
          break;
        case SlotReader::Step::kNeedCopy:
          if (!reader_.Copy(buffer_)) return false;
          (void)reader_.LookThroughCopy();
          break;
        case SlotReader::Step::kEnd:
          return true;
        case SlotReader::Step::kCorrupt:
          return false;
      }
      // It may go back to the first header, which a new slot's reader stands behind.
      Require(std::max<uint64_t>(reader_.position(), sizeof(weft_subbuf_header)) >= position);
      const auto& state = reader_.state();
      Require(state.accounted == handed_out_ + state.overwritten + state.skipped);
      (void)changes_->Next();
    }
    __builtin_trap();  // two rings of 8 KiB hold no such number of steps
  }

  void TakeRecord() {
    Touch(reader_.record().body);
    const uint64_t time = reader_.record().time;
    reader_.Advance();
    handed_out_++;
    if ((options_ & kTakeAlike) == 0) return;
    const auto alike = reader_.Alike(time + kLater);
    Touch({alike.first, alike.bytes * alike.count});
    reader_.AdvanceAlike(alike, alike.count);
    handed_out_ += alike.count;
  }

  static void Touch(std::span<const uint8_t> bytes) {
    uint8_t sum = 0;
    for (const uint8_t byte : bytes) sum ^= byte;
    volatile uint8_t sink = sum;
    (void)sink;
  }

  static constexpr int kMaxSteps = 4096;
  static constexpr uint64_t kLater = 64;  // ticks

  SlotReader reader_;
  uint8_t options_;
  Changes* changes_;
  uint64_t handed_out_ = 0;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(3000);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t options = data[0];
  const std::vector<uint8_t> memory = ValidMemory(options & kOverwrite);
  weft::UniqueFd fd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), kTotal) != 0 ||
      ::pwrite(fd.get(), memory.data(), memory.size(), 0) != static_cast<ssize_t>(kTotal)) {
    return 0;
  }
  const int number = fd.get();  // the ring set keeps it open
  Changes changes(number, {data + 2, size - 2});
  (void)changes.Next();
  (void)::fcntl(number, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  auto ring = RingSet::Open(std::move(fd));
  if (!ring) return 0;
  weft::ring::DescriptionReader descriptions(*ring);
  const auto take = [](uint16_t, weft::Bytes) -> weft::Status { return {}; };
  (void)descriptions.Poll(take);
  const uint32_t slots = std::min(ring->geometry().slot_count, 4U);
  for (uint32_t slot = 0; slot < slots; slot++) SlotRun(*ring, slot, options, changes).Read();
  (void)descriptions.Poll(take);
  return 0;
}
