// SPDX-License-Identifier: Apache-2.0
#include "lib/store/direct_pace.h"

#include <gtest/gtest.h>

namespace weft::store {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMiB = 1024 * 1024;

class DirectPaceTest : public testing::Test {
 protected:
  // `count` writes of a MiB that took `took`, one every `every`.
  void Write(int count, milliseconds took, milliseconds every) {
    for (int i = 0; i < count; i++, now_ += every) pace_.WroteDirectly(now_, now_ + took, kMiB);
  }
  // Returns the MiB that go through the page cache until direct writes are tried again.
  uint64_t LeftMiB() {
    uint64_t left = 0;
    for (; !pace_.direct(); left++) pace_.WroteToCache(kMiB);
    return left;
  }

  DirectPace pace_;
  DirectPace::Time now_ = DirectPace::Time(std::chrono::hours(1000));  // since the machine started
};

TEST_F(DirectPaceTest, ADiskThatTakesMostOfTheTimeIsLeftToTheCache) {
  Write(100, milliseconds(6), milliseconds(10));
  EXPECT_TRUE(pace_.direct());  // the writer kept up
  pace_.FallBehind();
  EXPECT_EQ(LeftMiB(), kLeftToCache / kMiB);
}

TEST_F(DirectPaceTest, AWriterThatIsSlowForOtherReasonsGoesOn) {
  Write(100, milliseconds(4), milliseconds(10));
  pace_.FallBehind();
  EXPECT_TRUE(pace_.direct());
}

TEST_F(DirectPaceTest, OneLongStallOfAQuickDiskCounts) {
  Write(100, milliseconds(1), milliseconds(5));
  Write(1, milliseconds(30), milliseconds(30));
  pace_.FallBehind();
  EXPECT_FALSE(pace_.direct());
}

TEST_F(DirectPaceTest, ASlowDiskIsLeftToTheCache) {
  Write(3, milliseconds(500), milliseconds(10000));
  EXPECT_TRUE(pace_.direct());  // a slow moment
  Write(20, milliseconds(25), milliseconds(10000));
  EXPECT_FALSE(pace_.direct());
}

TEST_F(DirectPaceTest, EachTryAfterwardsComesLaterUntilTheDiskKeepsUp) {
  for (uint64_t left = kLeftToCache; left <= kMaxLeftToCache; left *= 2) {
    Write(20, milliseconds(10), milliseconds(10));
    pace_.FallBehind();
    pace_.FallBehind();  // counts once
    EXPECT_EQ(LeftMiB(), left / kMiB);
  }
  pace_.FallBehind();
  EXPECT_EQ(LeftMiB(), kMaxLeftToCache / kMiB);
  Write(kKeptUp / kMiB, milliseconds(10), milliseconds(10));
  pace_.FallBehind();
  EXPECT_EQ(LeftMiB(), kLeftToCache / kMiB);
}

}  // namespace
}  // namespace weft::store
