// SPDX-License-Identifier: Apache-2.0
// Everything that a hostile process can put into a ring set: header, slot words, descriptions and
// records, with a change of the memory in the middle. Nothing may crash, hang or read out of
// bounds.
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

// (u16 offset, u8 length, bytes)* over the memory; the offset's unit is 8 bytes.
void Overlay(std::vector<uint8_t>& memory, std::span<const uint8_t> input) {
  while (input.size() > 3) {
    const uint64_t at = (input[0] | uint64_t{input[1]} << 8) * 8 % memory.size();
    const size_t n = std::min({size_t{input[2]}, input.size() - 3, memory.size() - at});
    std::memcpy(memory.data() + at, input.data() + 3, n);
    input = input.subspan(3 + n);
  }
}

void ReadSlot(const RingSet& ring, uint32_t slot, bool at_tail) {
  SlotReader reader(ring, slot);
  if (at_tail && !reader.ResumeAtTail()) return;
  std::vector<uint8_t> buffer(3000);
  if (!reader.Look()) return;
  for (int steps = 0; steps < 4096; steps++) {
    switch (reader.Fetch()) {
      case SlotReader::Step::kRecord: {
        uint8_t sum = 0;
        for (const uint8_t byte : reader.record().body) sum ^= byte;
        volatile uint8_t sink = sum;
        (void)sink;
        reader.Advance();
        break;
      }
      case SlotReader::Step::kNeedCopy:
        if (!reader.Copy(buffer)) return;
        break;
      case SlotReader::Step::kEnd:
      case SlotReader::Step::kCorrupt:
        return;
    }
  }
  __builtin_trap();  // two rings of 8 KiB hold no such number of steps
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::vector<uint8_t> memory = ValidMemory(data[0] & 1);
  Overlay(memory, {data + 2, size - 2});
  weft::UniqueFd fd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), kTotal) != 0 ||
      ::pwrite(fd.get(), memory.data(), memory.size(), 0) != static_cast<ssize_t>(kTotal)) {
    return 0;
  }
  (void)::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  auto ring = RingSet::Open(std::move(fd));
  if (!ring) return 0;
  weft::ring::DescriptionReader descriptions(*ring);
  (void)descriptions.Poll([](uint16_t, weft::Bytes) -> weft::Status { return {}; });
  const uint32_t slots = std::min(ring->geometry().slot_count, 4U);
  for (uint32_t slot = 0; slot < slots; slot++) ReadSlot(*ring, slot, (data[1] & 1) != 0);
  return 0;
}
