// SPDX-License-Identifier: Apache-2.0
// What is limited for each namespace and in total.
#include "relay/api/shares.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft::relay_api {
namespace {

TEST(SharesTest, ANamespaceTakesItsShareAndLeavesTheRest) {
  Shares shares(/*most=*/3, /*most_of_one=*/2);
  auto first = shares.Begin("reds");
  const auto second = shares.Begin("reds");
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(shares.Begin("reds"), nullptr);
  const auto third = shares.Begin("blues");
  EXPECT_NE(third, nullptr);
  EXPECT_EQ(shares.Begin("greens"), nullptr);
  first.reset();
  EXPECT_NE(shares.Begin("greens"), nullptr);  // and it ends at once
  EXPECT_NE(shares.Begin("reds"), nullptr);
}

}  // namespace
}  // namespace weft::relay_api
