// SPDX-License-Identifier: Apache-2.0
// See attacker.h.
#include "tests/hostile/attacker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "lib/ring/tick_clock.h"

namespace weft::hostile {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

// Values that break sums, shifts, bounds and signs.
uint64_t Attacker::Nasty() {
  switch (random_() % 8) {
    case 0:
      return 0;
    case 1:
      return ~uint64_t{0};
    case 2:
      return uint64_t{1} << (random_() % 64);
    case 3:
      return (uint64_t{1} << (random_() % 64)) - 1;
    case 4:
      return random_() % 65536;
    case 5:
      return (random_() % 4) << 12;
    case 6:
      return ~uint64_t{0} << (random_() % 64);
    default:
      return random_();
  }
}

void Attacker::MutateSlot(ring::testing::TestWriter& ring) {
  weft_slot* slot = ring.slot(random_() % ring.made().slot_count);
  switch (random_() % 9) {
    case 0:
      slot->head = Nasty();
      break;
    case 1:
      slot->head ^= uint64_t{1} << (random_() % 64);
      break;
    case 2:
      slot->head += 8 * (random_() % 16);
      break;
    case 3:
      slot->tail = Nasty();
      break;
    case 4:
      slot->frontier = random_() % 2 == 0 ? Nasty() : (random_() % 64) << 12;
      break;
    case 5:
      slot->lock = Nasty();
      slot->last_time = Nasty();
      break;
    case 6:
      slot->missed = slot->discarded[random_() % std::size(slot->discarded)] = Nasty();
      break;
    case 7:
      slot->closed = static_cast<uint32_t>(Nasty());
      break;
    default:
      slot->reserved[random_() % std::size(slot->reserved)] = Nasty();
  }
}

void Attacker::MutateData(ring::testing::TestWriter& ring) {
  const uint32_t slot = random_() % ring.made().slot_count;
  const uint64_t bytes = uint64_t{1} << ring.made().slot_shift;
  uint8_t* data = ring.ring(slot);
  const uint64_t at = (random_() % bytes) & ~uint64_t{7};
  switch (random_() % 7) {
    case 0: {  // a sub-buffer's header
      const uint64_t value = Nasty();
      std::memcpy(data + (at & ~uint64_t{4095}) + 8 * (random_() % 4), &value, 8);
      break;
    }
    case 1: {  // what may be a record's size, event and CPU
      const uint64_t value = Nasty();
      std::memcpy(data + at, &value, 8);
      break;
    }
    case 2: {  // the first record's time
      const uint64_t value = Nasty();
      std::memcpy(data + (at & ~uint64_t{4095}) + 32 + 8, &value, 8);
      break;
    }
    case 3: {  // the first record's size
      const auto value = static_cast<uint32_t>(Nasty());
      std::memcpy(data + (at & ~uint64_t{4095}) + 32, &value, 4);
      break;
    }
    case 4:
      data[at + random_() % 8] ^= static_cast<uint8_t>(1U << (random_() % 8));
      break;
    case 5:
      std::memset(data + at, static_cast<int>(random_()),
                  std::min<uint64_t>(bytes - at, random_() % 512));
      break;
    default: {
      const UniqueFd fd = ring.Fd();
      (void)::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>((random_() % ring.memory().size()) & ~uint64_t{4095}),
                        4096);
    }
  }
}

void Attacker::MutateDescriptions(ring::testing::TestWriter& ring) {
  if (random_() % 2 == 0) {
    ring.header()->descriptions_used = random_() % 2 == 0 ? Nasty() : 8 * (random_() % 64);
    return;
  }
  // Their bytes, after they may have been read.
  const uint64_t at = ring.made().descriptions_offset + random_() % 512;
  ring.memory()[at] = static_cast<uint8_t>(random_());
}

void Attacker::MutateHeader(ring::testing::TestWriter& ring) {
  uint8_t* header = ring.memory().data();
  // Changes one field, or two, or the neighbouring halves of two.
  const uint64_t at = 4 * (random_() % (sizeof(weft_ring_header) / 4 - 1));
  uint64_t value = Nasty();
  if (random_() % 2 == 0) {
    std::memcpy(&value, header + at, sizeof(value));
    value ^= uint64_t{1} << (random_() % 64);
  }
  std::memcpy(header + at, &value, random_() % 2 == 0 ? 4 : 8);
}

void Attacker::RestoreHeader(ring::testing::TestWriter& ring) {
  const uint64_t used = ring.header()->descriptions_used;
  *ring.header() = ring.made();
  ring.header()->descriptions_used = used;
}

void Attacker::Mutate(ring::testing::TestWriter& ring) {
  switch (random_() % 8) {
    case 0:
    case 1:
      return MutateSlot(ring);
    case 2:
      return MutateDescriptions(ring);
    case 3:
      // The change lasts until the next one: a reader that reads the header again sees another one.
      RestoreHeader(ring);
      if (random_() % 4 == 0) MutateHeader(ring);
      return;
    default:
      return MutateData(ring);
  }
}

void Attacker::MutateGently(ring::testing::TestWriter& ring) {
  const uint32_t slot = random_() % ring.made().slot_count;
  // The last record of the current sub-buffer, found as a reader does; maybe just being read.
  const uint64_t head = ring.slot(slot)->head & 0xffffffff;
  uint64_t at = (head & ~uint64_t{4095}) + sizeof(weft_subbuf_header);
  uint64_t record = 0;
  while (at + sizeof(weft_record) <= head) {
    uint32_t size;
    std::memcpy(&size, ring.ring(slot) + at, sizeof(size));
    if (size < sizeof(weft_record)) break;
    record = at;
    at += (uint64_t{size} + 7) & ~uint64_t{7};
  }
  const uint64_t value = Nasty();
  switch (random_() % 5) {
    case 0:
      ring.slot(slot)->discarded[random_() % WEFT_DISCARD_MISSED] = value;
      return;
    case 1:
      ring.slot(slot)->tail = value;
      return;
    case 2:
      if (record != 0) std::memcpy(ring.ring(slot) + record + 4, &value, 4);  // event and CPU
      return;
    case 3:
      if (record != 0) std::memcpy(ring.ring(slot) + record + 8, &value, 8);  // time
      return;
    default:  // payload, if it has one
      if (record != 0 && record + 24 <= head) std::memcpy(ring.ring(slot) + record + 16, &value, 8);
  }
}

void Attacker::Write(ring::testing::TestWriter& ring, int count) {
  ring::MachineTicks ticks(WEFT_CLOCK_TSC);
  const uint64_t bytes = uint64_t{1} << 14;
  for (int i = 0; i < count; i++) {
    const uint32_t slot = random_() % 3;
    // The writer itself trusts head: only where it still lies in the ring.
    const uint64_t offset = ring.slot(slot)->head & 0xffffffff;
    if (offset < 32 || offset + 1200 > bytes || offset % 8 != 0) continue;
    // Every second one is as event 0 is described.
    const bool right = random_() % 2 == 0;
    const std::vector<uint8_t> body(right ? 16 : random_() % 100 + 1,
                                    static_cast<uint8_t>(random_()));
    const uint64_t time = random_() % 8 == 0 ? Nasty() : ticks.Ticks();
    const auto cpu = static_cast<uint16_t>(random_() % 8 == 0 ? random_() : random_() % 2);
    (void)ring.Write(slot, right ? 0 : static_cast<uint16_t>(random_() % 4), cpu, time, body);
  }
}

UniqueFd Attacker::MakeImpostor(Impostor kind, uint64_t channel) {
  ring::testing::WriterOptions options{.channel_id = channel, .seals = 0};
  const auto seal = [](UniqueFd fd) {
    return fd && ::fcntl(fd.get(), F_ADD_SEALS, kSeals) == 0 ? std::move(fd) : UniqueFd();
  };
  const auto resized = [&](off_t bytes) {
    UniqueFd fd = ring::testing::TestWriter(options).Fd();
    return ::ftruncate(fd.get(), bytes) == 0 ? seal(std::move(fd)) : UniqueFd();
  };
  switch (kind) {
    case Impostor::kUnsealed:
      return ring::testing::TestWriter(options).Fd();
    case Impostor::kHalfSealed:
      options.seals = F_SEAL_SHRINK | F_SEAL_SEAL;
      return ring::testing::TestWriter(options).Fd();
    case Impostor::kTruncated: {
      const uint64_t bytes = ring::testing::TestWriter(options).made().total_size;
      return resized(static_cast<off_t>(random_() % bytes));
    }
    case Impostor::kGiant:
      return resized(off_t{1} << 45);
    case Impostor::kHugePages:
      return seal(
          UniqueFd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_CLOEXEC)));
    case Impostor::kDevice:
      return UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    case Impostor::kEmpty:
      return seal(UniqueFd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_CLOEXEC)));
  }
  return {};
}

}  // namespace weft::hostile
