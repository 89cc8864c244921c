// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/cluster/absence.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace weft::agent {
namespace {

using namespace std::chrono_literals;

TEST(Absence, BeginsWithTheLastStamp) {
  const std::string file = testing::TempDir() + "/weft-present";
  std::remove(file.c_str());
  EXPECT_FALSE(Absence(file).Since(kube::kLatestTime)) << "there was no agent before";

  const kube::WallTime before = std::chrono::system_clock::now();
  ASSERT_TRUE(Absence(file).Stamp(1));
  const auto since = Absence(file).Since(before + 1h);
  ASSERT_TRUE(since);
  EXPECT_LT(*since - before, 30min);
  EXPECT_FALSE(Absence(file).Since(*since + 1s)) << "a short one";
  EXPECT_FALSE(Absence(file).Since(*since - 1h)) << "the clock was set back";
  std::remove(file.c_str());
}

TEST(Absence, SaysWhereItCannotStamp) {
  const Status stamped = Absence("/nonexistent/present").Stamp(1);
  ASSERT_FALSE(stamped);
  EXPECT_TRUE(stamped.error().message.starts_with("/nonexistent/present: "));
}

TEST(Absence, IsDescribedByItsTimes) {
  const auto from = kube::ParseTime("2026-01-02T03:04:05Z");
  ASSERT_TRUE(from);
  EXPECT_EQ(DescribeSpan(*from, *from + 55s), "2026-01-02T03:04:05Z to 2026-01-02T03:05:00Z");
}

}  // namespace
}  // namespace weft::agent
