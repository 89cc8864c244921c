// SPDX-License-Identifier: Apache-2.0
#include "relay/rates/trace_rates.h"

#include <gtest/gtest.h>

namespace weft::relay_rates {
namespace {

using namespace std::chrono_literals;

class TraceRatesTest : public ::testing::Test {
 protected:
  // Events of the last `seconds` seconds.
  std::vector<std::uint64_t> Events(std::size_t seconds, const std::string& trace = "shop/sales") {
    std::vector<std::uint64_t> events;
    for (const PodRates& pod : rates.Of(trace, seconds))
      for (const Counts& second : pod.seconds) events.push_back(second.events);
    return events;
  }

  Clock::time_point now{1000s};
  TraceRates rates{[this] { return now; }};
};

TEST_F(TraceRatesTest, CountsWholeSeconds) {
  rates.Add("shop/sales", "a", {.events = 3, .bytes = 100, .discarded = 1, .lost = 2});
  EXPECT_EQ(Events(2), (std::vector<std::uint64_t>{0, 0}));  // this second is not over
  now += 1s;
  rates.Add("shop/sales", "a", {.events = 4, .bytes = 10});
  EXPECT_EQ(Events(2), (std::vector<std::uint64_t>{0, 3}));
  now += 2s;
  EXPECT_EQ(Events(4), (std::vector<std::uint64_t>{0, 3, 4, 0}));
  const auto pods = rates.Of("shop/sales", 1);
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods[0].total, (Counts{.events = 7, .bytes = 110, .discarded = 1, .lost = 2}));
  EXPECT_TRUE(rates.Of("shop/other", 1).empty());
}

TEST_F(TraceRatesTest, ForgetsWhatIsOlderThanAMinute) {
  for (int i = 0; i < 200; i++) {
    rates.Add("shop/sales", "a", {.events = static_cast<std::uint64_t>(i)});
    now += 1s;
  }
  const auto events = Events(1000);
  ASSERT_EQ(events.size(), kSeconds);
  EXPECT_EQ(events.front(), 140U);
  EXPECT_EQ(events.back(), 199U);
  now += 59s;
  EXPECT_EQ(Events(60).front(), 199U);
  now += 1s;
  for (const std::uint64_t second : Events(60)) EXPECT_EQ(second, 0U);
  rates.Add("shop/sales", "a", {.events = 7});
  now += 1s;
  const auto later = Events(60);
  EXPECT_EQ(later.back(), 7U);
  EXPECT_EQ(later.front(), 0U);
}

TEST_F(TraceRatesTest, KeepsPodsAndTracesApart) {
  rates.Add("shop/sales", "b", {.events = 2});
  rates.Add("shop/sales", "a", {.events = 1});
  rates.Add("bank/sales", "a", {.events = 9});
  now += 1s;
  EXPECT_EQ(Events(1), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Events(1, "bank/sales"), (std::vector<std::uint64_t>{9}));
}

TEST_F(TraceRatesTest, SilentPodsGiveTheirPlace) {
  for (std::size_t i = 0; i < kMaxPods; i++) rates.Add("old", std::to_string(i), {.events = 1});
  rates.Add("new", "a", {.events = 1});
  EXPECT_TRUE(rates.Of("new", 1).empty());
  now += std::chrono::seconds(kSeconds + 1);
  rates.Add("new", "a", {.events = 1});
  EXPECT_EQ(rates.Of("new", 1).size(), 1U);
  EXPECT_TRUE(rates.Of("old", 1).empty());
}

}  // namespace
}  // namespace weft::relay_rates
