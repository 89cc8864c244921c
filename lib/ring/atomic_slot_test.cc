// SPDX-License-Identifier: Apache-2.0
// The atomic slot with real threads, for ThreadSanitizer above all (it cannot see rseq sections):
// many writers, a reader that takes records while they write, a lock whose owner never comes back.
#include "lib/ring/atomic_slot.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace weft {
namespace {

constexpr uint32_t kSubbufShift = 12;
constexpr uint32_t kSlotShift = 14;

uint64_t Now() {
  static std::atomic<uint64_t> ticks{0};
  return ticks.fetch_add(1);
}

// Waits that threads of a test make, at most.
constexpr uint32_t kWaits = 2'000'000;
std::atomic<uint64_t> waits{0};

int Wait(weft_slot* /*slot*/, uint64_t /*owner*/, uint32_t step) {
  waits.fetch_add(1);
  sched_yield();
  return step < kWaits ? 1 : 0;
}

int WaitTwice(weft_slot* /*slot*/, uint64_t /*owner*/, uint32_t step) {
  waits.fetch_add(1);
  return step < 2 ? 1 : 0;
}

class Memory {
 public:
  explicit Memory(weft_ring_mode mode) : data_(size_t{1} << kSlotShift) {
    slot_.head = WEFT_HEAD_INITIAL;
    mapped_->slot[0] = {&slot_, reinterpret_cast<uint8_t*>(data_.data())};
    ring_.slots = mapped_;
    ring_.subbuf_shift = kSubbufShift;
    ring_.subbuf_mask = (1U << kSubbufShift) - 1;
    ring_.slot_mask = (1U << kSlotShift) - 1;
    ring_.subbufs = 1U << (kSlotShift - kSubbufShift);
    ring_.mode = mode;
  }

  weft_write_result Write(uint64_t self, uint64_t value, weft_atomic_wait wait = WaitTwice) {
    const uint64_t payload[2] = {self, value};
    const weft_piece piece = {payload, sizeof(payload)};
    const uint32_t size = sizeof(weft_record) + sizeof(payload);
    const weft_record_parts parts = {weft_record_word0(size, 3), weft_record_increment(size),
                                     &piece, 1};
    return weft_atomic_write(&ring_, self, &parts, 0, Now, wait);
  }

  // Takes all committed records; the order of R1, R2 and R5. Discard mode.
  template <typename Visit>
  void Read(Visit visit) {
    for (;;) {
      // acquire: the records below head
      const uint64_t head = __atomic_load_n(&slot_.head, __ATOMIC_ACQUIRE);
      const uint32_t end = static_cast<uint32_t>(head);
      const uint32_t at = static_cast<uint32_t>(position_ & ring_.slot_mask);
      if (at == end) return;
      weft_record record;
      memcpy(&record, mapped_->slot[0].data + at, sizeof(record.size));
      if (record.size == 0) {  // pad: the next sub-buffer
        position_ = ((position_ >> kSubbufShift) + 1) << kSubbufShift;
        position_ += WEFT_HEAD_INITIAL;
      } else {
        memcpy(&record, mapped_->slot[0].data + at, sizeof(record));
        uint64_t payload[2];
        memcpy(payload, mapped_->slot[0].data + at + sizeof(record), sizeof(payload));
        visit(record, payload[0], payload[1]);
        position_ += (record.size + 7) & ~7U;
      }
      // release: our copies before the room they make
      __atomic_store_n(&slot_.tail, position_, __ATOMIC_RELEASE);
    }
  }

  uint64_t Discarded(weft_discard_reason reason) {
    // relaxed: asked for when all writers are done
    return __atomic_load_n(&slot_.discarded[reason], __ATOMIC_RELAXED);
  }
  weft_slot& slot() { return slot_; }
  const weft_writer_ring& ring() const { return ring_; }

 private:
  std::vector<uint64_t> data_;
  weft_slot slot_{};
  uint64_t table_[(sizeof(weft_writer_slots) + sizeof(weft_writer_slot)) / 8] = {};
  weft_writer_slots* mapped_ = reinterpret_cast<weft_writer_slots*>(table_);
  weft_writer_ring ring_{};
  uint64_t position_ = WEFT_HEAD_INITIAL;
};

TEST(AtomicSlot, ManyWritersAndAReaderBalance) {
  constexpr uint64_t kThreads =
      8;  // more than most machines of tests have CPUs: owners lose theirs
  constexpr uint64_t kEvents = 20000;
  Memory memory(WEFT_RING_DISCARD);
  std::atomic<uint64_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) memory.Write(t, i, Wait);
      running.fetch_sub(1);
    });
  }
  std::vector<uint64_t> next(kThreads + 1, 0);
  uint64_t records = 0;
  uint64_t last_time = 0;
  const auto visit = [&](const weft_record& record, uint64_t self, uint64_t value) {
    EXPECT_GE(value, next.at(self));
    next.at(self) = value + 1;
    EXPECT_GE(record.time, last_time);
    last_time = record.time;
    ++records;
  };
  while (running.load() != 0) memory.Read(visit);
  for (std::thread& t : threads) t.join();
  memory.Read(visit);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_CONTENDED), 0U);
  EXPECT_EQ(records + memory.Discarded(WEFT_DISCARD_FULL), kThreads * kEvents);
  EXPECT_EQ(memory.slot().lock, 0U);
}

TEST(AtomicSlot, OwnersOwnHandlerIsDiscardedAsNestedAndDoesNotWait) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().lock = 42;
  EXPECT_EQ(memory.Write(42, 0), WEFT_WRITE_FULL);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_NESTED), 1U);
  EXPECT_EQ(memory.slot().lock, 42U);
}

TEST(AtomicSlot, AnOwnerThatNeverComesBackIsWaitedForInBoundedTime) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().lock = 42;
  EXPECT_EQ(memory.Write(7, 0), WEFT_WRITE_FULL);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_CONTENDED), 1U);
}

TEST(AtomicSlot, OnlyTheFirstWaitsForAnOwnerThatNeverComesBack) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().lock = 42;
  const uint64_t before = waits;
  for (int i = 0; i < 20000; ++i) EXPECT_EQ(memory.Write(7, 0), WEFT_WRITE_FULL);
  EXPECT_EQ(waits - before, 3U);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_CONTENDED), 20000U);
  EXPECT_EQ(memory.ring().stuck_owner, 42U);
  memory.slot().lock = 0;  // it came back after all
  EXPECT_EQ(memory.Write(7, 0), WEFT_WRITE_COMMITTED);
  EXPECT_EQ(memory.ring().stuck_owner, 0U);
}

TEST(AtomicSlot, AnOwnerThatGetsOnIsNotRemembered) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().lock = 42;
  const auto head_moves = [](weft_slot* slot, uint64_t /*owner*/, uint32_t /*step*/) {
    slot->head += 24 + (uint64_t{1} << 32);
    return 0;
  };
  EXPECT_EQ(memory.Write(7, 0, head_moves), WEFT_WRITE_FULL);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_CONTENDED), 1U);
  EXPECT_EQ(memory.ring().stuck_owner, 0U);
}

TEST(AtomicSlot, NothingIsCountedWithoutTheLockOnceTheSlotIsClosed) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().closed = 1;
  memory.slot().lock = 42;
  EXPECT_EQ(memory.Write(42, 0), WEFT_WRITE_CLOSED);
  EXPECT_EQ(memory.Write(7, 0), WEFT_WRITE_CLOSED);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_NESTED), 0U);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_CONTENDED), 0U);
}

TEST(AtomicSlot, ClosedIsNeitherRecordedNorDiscarded) {
  Memory memory(WEFT_RING_DISCARD);
  memory.slot().closed = 1;
  EXPECT_EQ(memory.Write(7, 0), WEFT_WRITE_CLOSED);
  EXPECT_EQ(memory.slot().head, WEFT_HEAD_INITIAL);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_FULL), 0U);
}

TEST(AtomicSlot, OverwriteModePublishesTheFrontierAndNeverDiscards) {
  Memory memory(WEFT_RING_OVERWRITE);
  for (uint64_t i = 0; i < 10000; ++i) EXPECT_EQ(memory.Write(1, i), WEFT_WRITE_COMMITTED);
  EXPECT_EQ(memory.Discarded(WEFT_DISCARD_FULL), 0U);
  // 126 records a sub-buffer (a head never stands at its end): 79 full ones before the current one.
  EXPECT_EQ(memory.slot().frontier >> kSubbufShift, 10000 / 126 - 3);
}

}  // namespace
}  // namespace weft
