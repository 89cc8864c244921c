// SPDX-License-Identifier: Apache-2.0
// A slot's reader hands out every committed record once, says exactly what was overwritten, and
// takes any contradiction for what it is.
#include "lib/ring/slot_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lib/ring/testing/test_writer.h"

namespace weft::ring {
namespace {

using testing::TestWriter;
using testing::WriterOptions;
using Step = SlotReader::Step;

std::vector<uint8_t> Body(uint64_t number, size_t size) {
  std::vector<uint8_t> body(std::max(size, sizeof(number)));
  std::memcpy(body.data(), &number, sizeof(number));
  return body;
}

uint64_t Number(const RecordView& record) {
  uint64_t number = 0;
  std::memcpy(&number, record.body.data(), sizeof(number));
  return number;
}

// A reader with its ring set and buffer; reads everything that is there.
class Reading {
 public:
  explicit Reading(const TestWriter& writer, uint32_t slot = 0, size_t buffer = 64 * 1024)
      : ring_(*RingSet::Open(writer.Fd())), reader(ring_, slot), buffer_(buffer) {}

  // Reads up to `most` records. Returns false if the ring is corrupt.
  bool Read(size_t most = SIZE_MAX) {
    if (!reader.Look()) return false;
    while (most > 0) {
      switch (reader.Fetch()) {
        case Step::kRecord:
          numbers.push_back(Number(reader.record()));
          reader.Advance();
          most--;
          break;
        case Step::kNeedCopy:
          if (!reader.Copy(buffer_)) return false;
          break;
        case Step::kEnd:
          return true;
        case Step::kCorrupt:
          return false;
      }
    }
    return true;
  }
  void StoreTail() { ring_.StoreTail(reader.slot(), reader.position()); }

 private:
  RingSet ring_;

 public:
  SlotReader reader;
  std::vector<uint64_t> numbers;

 private:
  std::vector<uint8_t> buffer_;
};

TEST(SlotReader, EmptySlotHasNothing) {
  TestWriter writer;
  Reading reading(writer);
  EXPECT_TRUE(reading.Read());
  EXPECT_EQ(reading.reader.CountCommitted(), 0U);
  EXPECT_TRUE(reading.numbers.empty());
}

TEST(SlotReader, FreshZeroMemoryIsAnEmptySlot) {
  TestWriter writer;
  writer.slot(0)->head = 0;
  Reading reading(writer);
  EXPECT_TRUE(reading.Read());
}

TEST(SlotReader, HandsOutWrittenRecords) {
  TestWriter writer;
  ASSERT_TRUE(writer.Write(1, 5, 9, 1234, Body(77, 11)));
  Reading reading(writer, 1);
  ASSERT_TRUE(reading.reader.Look());
  std::vector<uint8_t> buffer(4096);
  ASSERT_EQ(reading.reader.Fetch(), Step::kNeedCopy);
  ASSERT_TRUE(reading.reader.Copy(buffer));
  ASSERT_EQ(reading.reader.Fetch(), Step::kRecord);
  EXPECT_EQ(reading.reader.record().event, 5);
  EXPECT_EQ(reading.reader.record().cpu, 9);
  EXPECT_EQ(reading.reader.record().time, 1234U);
  EXPECT_EQ(reading.reader.record().body.size(), 11U);
  reading.reader.Advance();
  EXPECT_EQ(reading.reader.Fetch(), Step::kEnd);
}

TEST(SlotReader, ReportsTheBytesThatALargeRecordNeeds) {
  TestWriter writer({.subbuf_shift = 16, .subbufs_shift = 1});
  const size_t largest = (size_t{1} << 14) - sizeof(weft_record);
  for (const size_t size : {size_t{10}, largest - 1, largest})
    ASSERT_TRUE(writer.Write(0, 5, 9, 1234, Body(77, size))) << size;
  Reading reading(writer);
  SlotReader& reader = reading.reader;
  ASSERT_TRUE(reader.Look());
  std::vector<uint8_t> buffer(4096);
  EXPECT_EQ(reader.Fetch(), Step::kNeedCopy);
  EXPECT_EQ(reader.needed(), 0U);
  ASSERT_TRUE(reader.Copy(buffer));
  ASSERT_EQ(reader.Fetch(), Step::kRecord);
  for (const size_t size : {largest - 1, largest}) {
    reader.Advance();
    // The header may be behind the copy's end.
    while (reader.Fetch() == Step::kNeedCopy && reader.needed() == 0)
      ASSERT_TRUE(reader.Copy(buffer));
    ASSERT_EQ(reader.Fetch(), Step::kNeedCopy);
    EXPECT_EQ(reader.needed(), (size + sizeof(weft_record) + 7) / 8 * 8);
    std::vector<uint8_t> larger(reader.needed());
    ASSERT_TRUE(reader.Copy(larger));
    ASSERT_EQ(reader.Fetch(), Step::kRecord);
    EXPECT_EQ(reader.record().body.size(), size);
  }
  reader.Advance();
  EXPECT_EQ(reader.Fetch(), Step::kEnd);
}

TEST(SlotReader, ASlotMayBeginWithALargeRecord) {
  TestWriter writer({.subbuf_shift = 16, .subbufs_shift = 1});
  ASSERT_TRUE(writer.Write(0, 5, 9, 1234, Body(77, (size_t{1} << 14) - sizeof(weft_record))));
  Reading reading(writer);
  SlotReader& reader = reading.reader;
  ASSERT_TRUE(reader.Look());
  std::vector<uint8_t> buffer(4096);
  ASSERT_TRUE(reader.Copy(buffer));
  ASSERT_EQ(reader.Fetch(), Step::kNeedCopy);
  std::vector<uint8_t> larger(reader.needed());
  ASSERT_TRUE(reader.Copy(larger));
  EXPECT_EQ(reader.Fetch(), Step::kRecord);
}

TEST(SlotReader, ARecordBeyondAQuarterOfASubBufferIsAContradiction) {
  TestWriter writer({.subbuf_shift = 16, .subbufs_shift = 1});
  const size_t largest = (size_t{1} << 14) - sizeof(weft_record);
  ASSERT_TRUE(writer.Write(0, 5, 9, 1234, Body(77, largest + 1)));
  EXPECT_FALSE(Reading(writer).Read());
}

TEST(SlotReader, DiscardModeLosesNothingThatWasCommitted) {
  std::mt19937 random(1);
  TestWriter writer;
  Reading reading(writer, 0, 5000);
  uint64_t number = 0;
  for (int i = 0; i < 20000; i++) {
    if (writer.Write(0, 0, 0, i, Body(number, random() % 900))) number++;
    if (random() % 7 == 0) {
      ASSERT_TRUE(reading.Read(random() % 20)) << reading.reader.why_corrupt();
      if (random() % 2 == 0) reading.StoreTail();
    }
  }
  ASSERT_TRUE(reading.Read());
  ASSERT_EQ(reading.numbers.size(), number);
  for (uint64_t i = 0; i < number; i++) ASSERT_EQ(reading.numbers[i], i);
  EXPECT_EQ(reading.reader.CountCommitted(), writer.committed(0));
  EXPECT_GT(writer.discarded(0), 0U);
  EXPECT_EQ(reading.reader.state().overwritten, 0U);
}

TEST(SlotReader, OverwriteModeCountsOverwrittenRecordsExactly) {
  for (const uint32_t subbufs_shift : {1U, 2U, 3U}) {
    std::mt19937 random(subbufs_shift);
    TestWriter writer({.subbufs_shift = subbufs_shift, .mode = WEFT_RING_OVERWRITE});
    Reading reading(writer, 0, 2000);
    uint64_t number = 0;
    for (int i = 0; i < 20000; i++) {
      ASSERT_TRUE(writer.Write(0, 0, 0, i, Body(number++, random() % 900)));
      if (random() % 40 == 0) {
        ASSERT_TRUE(reading.Read(random() % 60));
      }
    }
    ASSERT_TRUE(reading.Read());
    EXPECT_GT(reading.reader.state().overwritten, 0U);
    EXPECT_EQ(reading.numbers.size() + reading.reader.state().overwritten, number);
    EXPECT_EQ(reading.reader.CountCommitted(), number);
    for (size_t i = 1; i < reading.numbers.size(); i++) {
      ASSERT_LT(reading.numbers[i - 1], reading.numbers[i]);
    }
    EXPECT_EQ(reading.numbers.back(), number - 1);
  }
}

TEST(SlotReader, AWriterKilledBetweenAnyTwoStoresLeavesAWholeRing) {
  for (const uint32_t mode : {WEFT_RING_DISCARD, WEFT_RING_OVERWRITE}) {
    for (int kill_at = 0; kill_at < 60; kill_at++) {
      TestWriter writer({.subbufs_shift = 1, .mode = mode});
      int stores = 0;
      uint64_t number = 0;
      // Kill in the writes around the switches from sub-buffer 0 to 1, 1 to 2 and 2 to 3.
      for (int i = 0; i < 10; i++) writer.Write(0, 0, 0, i, Body(number++, 960));
      writer.before_store = [&] { return stores++ < kill_at; };
      for (int i = 0; i < 12 && stores <= kill_at; i++) {
        if (writer.Write(0, 0, 0, 100, Body(number, 960))) number++;
      }
      Reading reading(writer);
      ASSERT_TRUE(reading.Read()) << reading.reader.why_corrupt();
      const SlotState state = reading.reader.state();
      EXPECT_EQ(state.accounted, writer.committed(0));
      EXPECT_EQ(reading.numbers.size() + state.overwritten, writer.committed(0));
    }
  }
}

TEST(SlotReader, ANewReaderGoesOnFromAState) {
  for (const uint32_t mode : {WEFT_RING_DISCARD, WEFT_RING_OVERWRITE}) {
    std::mt19937 random(mode);
    TestWriter writer({.mode = mode});
    SlotState state;
    uint64_t number = 0;
    std::vector<uint64_t> numbers;
    for (int round = 0; round < 300; round++) {
      for (int i = 0; i < 9; i++) {
        if (writer.Write(0, 0, 0, round, Body(number, random() % 900))) number++;
      }
      Reading reading(writer);
      ASSERT_TRUE(reading.reader.Resume(state));
      ASSERT_TRUE(reading.Read(random() % 12)) << reading.reader.why_corrupt();
      state = reading.reader.state();
      numbers.insert(numbers.end(), reading.numbers.begin(), reading.numbers.end());
      if (random() % 3 == 0) reading.StoreTail();
    }
    Reading last(writer);
    ASSERT_TRUE(last.reader.Resume(state));
    ASSERT_TRUE(last.Read()) << last.reader.why_corrupt();
    numbers.insert(numbers.end(), last.numbers.begin(), last.numbers.end());
    EXPECT_EQ(numbers.size() + last.reader.state().overwritten, number);
    if (mode == WEFT_RING_DISCARD) {
      for (uint64_t i = 0; i < number; i++) ASSERT_EQ(numbers[i], i);
    }
  }
}

TEST(SlotReader, BeginsAtTheTailWithoutAState) {
  TestWriter writer;
  uint64_t number = 0;
  for (int i = 0; i < 30; i++) writer.Write(0, 0, 0, i, Body(number++, 200));
  {
    Reading reading(writer);
    ASSERT_TRUE(reading.Read(25));
    reading.StoreTail();
  }
  Reading reading(writer, 0, 1000);
  EXPECT_FALSE(reading.reader.skips());
  ASSERT_TRUE(reading.reader.ResumeAtTail());
  EXPECT_TRUE(reading.reader.skips());
  ASSERT_TRUE(reading.Read()) << reading.reader.why_corrupt();
  ASSERT_EQ(reading.numbers.size(), 5U);
  EXPECT_EQ(reading.numbers.front(), 25U);
  EXPECT_FALSE(reading.reader.skips());
  EXPECT_EQ(reading.reader.CountCommitted(), number);
}

TEST(SlotReader, TimesInASlotNeverGoBack) {
  TestWriter writer;
  for (const uint64_t time : {5, 3, 8, 7}) writer.Write(0, 0, 0, time, Body(0, 8));
  Reading reading(writer);
  ASSERT_TRUE(reading.reader.Look());
  std::vector<uint8_t> buffer(4096);
  ASSERT_TRUE(reading.reader.Copy(buffer));
  for (const uint64_t time : {5, 5, 8, 8}) {
    ASSERT_EQ(reading.reader.Fetch(), Step::kRecord);
    EXPECT_EQ(reading.reader.record().time, time);
    reading.reader.Advance();
  }
  EXPECT_EQ(reading.reader.clamped(), 2U);
}

TEST(SlotReader, FindsWhatTheRecordsOfACopyHaveInCommon) {
  TestWriter writer;
  for (const uint64_t time : {5, 3, 8}) writer.Write(0, 0, 1, time, Body(0, 8));
  Reading reading(writer);
  EXPECT_FALSE(reading.reader.LookThroughCopy().one_cpu);
  std::vector<uint8_t> buffer(4096);
  ASSERT_TRUE(reading.reader.Look());
  ASSERT_TRUE(reading.reader.Copy(buffer));
  EXPECT_TRUE(reading.reader.LookThroughCopy().one_cpu);
  EXPECT_EQ(reading.reader.LookThroughCopy().cpu, 1U);
  EXPECT_EQ(reading.reader.LookThroughCopy().last_time, 8U);
  while (reading.reader.Fetch() == Step::kRecord) reading.reader.Advance();
  EXPECT_FALSE(reading.reader.LookThroughCopy().one_cpu);
  writer.Write(0, 0, 1, 9, Body(0, 8));
  writer.Write(0, 0, 2, 10, Body(0, 8));
  ASSERT_TRUE(reading.reader.Look());
  ASSERT_TRUE(reading.reader.Copy(buffer));
  EXPECT_FALSE(reading.reader.LookThroughCopy().one_cpu);
  EXPECT_EQ(reading.reader.LookThroughCopy().last_time, 10U);
}

TEST(SlotReader, RecordsThatAreAlikeAreHandedOutTogether) {
  TestWriter writer;
  const auto write = [&](uint64_t time, uint16_t event, uint16_t cpu, size_t bytes) {
    ASSERT_TRUE(writer.Write(0, event, cpu, time, Body(0, bytes)));
  };
  for (const uint64_t time : {1, 2, 3, 4, 5, 6, 7, 7, 9}) write(time, 0, 1, 8);
  for (const uint64_t time : {8, 10}) write(time, 0, 1, 8);  // the first one goes back
  for (const uint64_t time : {11, 12}) write(time, 0, 2, 8);
  for (const uint64_t time : {13, 14}) write(time, 1, 2, 8);
  for (const uint64_t time : {15, 16}) write(time, 1, 2, 16);
  Reading reading(writer);
  SlotReader& reader = reading.reader;
  std::vector<uint8_t> buffer(4096);
  ASSERT_TRUE(reader.Look());
  ASSERT_TRUE(reader.Copy(buffer));
  (void)reader.LookThroughCopy();
  const auto take = [&](uint64_t to) {
    EXPECT_EQ(reader.Fetch(), Step::kRecord);
    reader.Advance();
    const AlikeRecords alike = reader.Alike(to);
    reader.AdvanceAlike(alike, alike.count);
    return alike.count;
  };
  EXPECT_EQ(take(1), 0U);
  EXPECT_EQ(take(3), 1U);
  EXPECT_EQ(take(7), 4U);    // 5, 6, 7, 7
  EXPECT_EQ(take(100), 0U);  // 8 is before 9
  EXPECT_EQ(take(100), 1U);  // 8, raised to 9; 10
  EXPECT_EQ(reader.state().accounted, 11U);
  EXPECT_EQ(take(100), 1U);  // another CPU
  EXPECT_EQ(take(100), 1U);  // another event
  EXPECT_EQ(take(100), 1U);  // another size
  EXPECT_EQ(reader.state().accounted, 17U);
  EXPECT_EQ(reader.Fetch(), Step::kEnd);
  EXPECT_EQ(reader.clamped(), 1U);
}

class Contradiction : public ::testing::Test {
 protected:
  Contradiction() {
    for (int i = 0; i < 12; i++) writer.Write(0, 0, 0, i, Body(0, 900));
  }
  weft_record* Record() {
    return reinterpret_cast<weft_record*>(writer.ring(0) + sizeof(weft_subbuf_header));
  }
  weft_subbuf_header* Header(uint32_t index) {
    return reinterpret_cast<weft_subbuf_header*>(writer.ring(0) + index * 4096);
  }
  bool Reads() {
    Reading reading(writer);
    return reading.Read();
  }
  TestWriter writer;
};

TEST_F(Contradiction, TheUnchangedRingHasNone) { EXPECT_TRUE(Reads()); }

TEST_F(Contradiction, RecordSizes) {
  for (const uint32_t size : {1U, 15U, 1025U, 65536U, ~0U, 0x80000000U}) {
    Record()->size = size;
    EXPECT_FALSE(Reads()) << size;
  }
}

TEST_F(Contradiction, Heads) {
  for (const uint64_t head :
       {uint64_t{8}, uint64_t{33}, uint64_t{1} << 31, uint64_t{4096 * 4}, uint64_t{4096},
        uint64_t{0xffffffff}, ~uint64_t{0}, (uint64_t{200} << 32) | 40, uint64_t{4096 - 4}}) {
    writer.slot(0)->head = head;
    EXPECT_FALSE(Reads()) << head;
  }
}

TEST_F(Contradiction, HeadThatGoesBack) {
  Reading reading(writer);
  ASSERT_TRUE(reading.Read());
  writer.slot(0)->head -= 8;
  EXPECT_FALSE(reading.Read());
}

TEST_F(Contradiction, CountOfHead) {
  writer.slot(0)->head += uint64_t{1} << 32;
  EXPECT_FALSE(Reads());
}

TEST_F(Contradiction, Sequence) {
  Header(1)->sequence = 5;
  EXPECT_FALSE(Reads());
}

TEST_F(Contradiction, RecordsBefore) {
  Header(1)->records_before++;
  EXPECT_FALSE(Reads());
  Header(1)->records_before = ~uint64_t{0};
  EXPECT_FALSE(Reads());
}

TEST_F(Contradiction, PadWhereARecordShouldBe) {
  Record()->size = 0;
  EXPECT_FALSE(Reads());
}

TEST_F(Contradiction, PunchedHole) {
  std::memset(writer.ring(0), 0, 4096 * 4);
  EXPECT_FALSE(Reads());
}

TEST_F(Contradiction, RefusesStatesThatNoReaderHad) {
  RingSet ring(*RingSet::Open(writer.Fd()));
  for (const uint64_t position : {uint64_t{1}, uint64_t{8}, uint64_t{36}, ~uint64_t{7}}) {
    SlotReader reader(ring, 0);
    EXPECT_FALSE(reader.Resume({.position = position})) << position;
  }
}

// A ring of random bytes under random heads: whatever happens, it ends.
TEST(SlotReader, RandomMemoryEndsEveryRound) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; round++) {
    TestWriter writer({.slots = 1, .mode = round % 2 == 0 ? 0U : 1U});
    for (int i = 0; i < 20; i++) writer.Write(0, 0, 0, i, Body(0, random() % 900));
    auto memory = std::span(writer.ring(0), 4 * 4096);
    for (int i = 0; i < 5; i++) memory[random() % memory.size()] = static_cast<uint8_t>(random());
    if (random() % 2 == 0) writer.slot(0)->head ^= uint64_t{1} << (random() % 64);
    if (random() % 2 == 0) writer.slot(0)->frontier = random() >> (random() % 64);
    Reading reading(writer, 0, 1024 + random() % 4096);
    for (int look = 0; look < 4; look++) {
      if (!reading.Read(1000)) break;
    }
  }
}

}  // namespace
}  // namespace weft::ring
