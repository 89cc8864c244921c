// SPDX-License-Identifier: GPL-2.0-only
// Every event is in the ring, or counted as discarded, or as missed by the kernel, whatever happens
// at the same time.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr unsigned kThreads = 4;  // more than the guest has CPUs

class StormTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    ASSERT_NE(Features() & source().needs, 0U) << "this module has no such events";
  }
  [[nodiscard]] static const Source& source() { return Sources()[GetParam()]; }
};

// Notes the values of a Storm that were seen.
class Seen {
 public:
  explicit Seen(uint64_t count) : count_(count), times_(kThreads, std::vector<uint8_t>(count)) {}

  void Add(uint64_t value) {
    const uint64_t thread = value >> 32;
    const uint64_t n = value & 0xffffffff;
    if (thread >= kThreads || n >= count_)
      strange_++;
    else
      times_[thread][n]++;
  }

  // Returns the number of values seen once; a value seen again is an error.
  uint64_t Once() {
    uint64_t once = 0;
    for (const auto& thread : times_) {
      for (const uint8_t times : thread) {
        EXPECT_LE(times, 1);
        once += times == 1 ? 1 : 0;
      }
    }
    EXPECT_EQ(strange_, 0U) << "values that no thread emitted";
    return once;
  }

 private:
  uint64_t count_;
  std::vector<std::vector<uint8_t>> times_;
  uint64_t strange_ = 0;
};

TEST_P(StormTest, EveryEventIsReadOrCountedWhileAReaderReads) {
  const uint64_t count = Scaled(200'000) / source().cost;
  const Recording recording = Record(source().event());
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(view.problem(), "");
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);

  Seen seen(count);
  uint64_t read = 0;
  const auto use = [&](uint32_t, const SeenRecord& record) {
    EXPECT_EQ(record.event, recording.event_id);
    seen.Add(record.Field(0));
  };
  Storm storm(source(), kThreads, count);
  while (!storm.over() && view.problem().empty()) read += view.DrainAll(use);
  storm.Join();
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  read += view.DrainAll(use);

  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(read, view.Committed());
  EXPECT_EQ(seen.Once(), read);
  EXPECT_EQ(view.Committed() + view.Discarded(), kThreads * count);
}

TEST_P(StormTest, KeepsTheFirstEventsAndCountsTheOthersWithoutAReader) {
  const uint64_t count = Scaled(100'000) / source().cost;
  weft_kernel_channel channel = RightChannel();
  channel.slot_shift = 14;
  channel.subbuf_shift = 12;
  const Recording recording = Record(source().event(), channel);
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  {
    const Storm storm(source(), kThreads, count);
  }
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);

  const uint64_t before = view.Discarded();
  EXPECT_GT(before, 0U);
  uint64_t full = 0;
  for (uint32_t i = 0; i < view.rings(); i++) full += view.slot(i)->discarded[WEFT_DISCARD_FULL];
  EXPECT_EQ(full + view.Missed(), before);
  Seen seen(count);
  const uint64_t read =
      view.DrainAll([&](uint32_t, const SeenRecord& record) { seen.Add(record.Field(0)); });
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(seen.Once(), read);
  EXPECT_EQ(read + before, kThreads * count);
}

TEST_P(StormTest, OverwriteModeKeepsTheNewestAndCountsTheOthers) {
  const uint64_t count = Scaled(100'000) / source().cost;
  weft_kernel_channel channel = RightChannel();
  channel.mode = WEFT_RING_OVERWRITE;
  channel.slot_shift = 14;
  channel.subbuf_shift = 12;
  const Recording recording = Record(source().event(), channel);
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  {
    const Storm storm(source(), kThreads, count);
  }
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);

  Seen seen(count);
  const uint64_t read =
      view.DrainAll([&](uint32_t, const SeenRecord& record) { seen.Add(record.Field(0)); });
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(view.Discarded(), view.Missed());
  EXPECT_GT(view.overwritten(), 0U);
  EXPECT_EQ(seen.Once(), read);
  EXPECT_EQ(read + view.overwritten() + view.Missed(), kThreads * count);
  for (uint32_t i = 0; i < view.rings(); i++) {
    const uint64_t turns = view.slot(i)->frontier;
    EXPECT_LE(turns, view.slot(i)->tail) << "slot " << i;
  }
}

TEST_P(StormTest, SwitchingOffAndOnLosesNoCount) {
  const Recording recording = Record(source().event());
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  uint64_t read = 0;
  const auto use = [](uint32_t, const SeenRecord&) {};
  {
    const Noise noise(source().emit);
    for (uint64_t i = 0; i < Scaled(50); i++) {
      ASSERT_EQ(Switch(recording.session.get(), 1), 0);
      read += view.DrainAll(use);
      ASSERT_EQ(Switch(recording.session.get(), 0), 0);
      const uint64_t committed = view.Committed();
      read += view.DrainAll(use);
      EXPECT_EQ(view.Committed(), committed) << "an event came after the switch";
    }
  }
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(read, view.Committed());
  EXPECT_GT(read, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sources, StormTest, testing::Range(size_t{0}, Sources().size()),
                         [](const auto& info) { return Sources()[info.param].name; });

}  // namespace
}  // namespace weft::kmod
