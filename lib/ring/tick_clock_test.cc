// SPDX-License-Identifier: Apache-2.0
// Converted time follows CLOCK_MONOTONIC and never goes back, whatever the counter's rate.
#include "lib/ring/tick_clock.h"

#include <gtest/gtest.h>

#include "lib/abi/ring.h"

namespace weft::ring {
namespace {

class FakeTicks : public TickSource {
 public:
  explicit FakeTicks(double ticks_per_ns) : rate_(ticks_per_ns) {}
  uint64_t Ticks() override { return ticks_; }
  Pair Sample() override {
    Pass(1'000'000);
    return {ticks_, ns_};
  }
  void Pass(uint64_t ns) {
    ns_ += ns;
    ticks_ += static_cast<uint64_t>(static_cast<double>(ns) * rate_);
  }
  void set_rate(double rate) { rate_ = rate; }
  [[nodiscard]] uint64_t ns() const { return ns_; }

 private:
  double rate_;
  uint64_t ticks_ = 1'000'000'000'000;
  uint64_t ns_ = 5'000'000'000;
};

TEST(TickClock, ConvertsAtTheMeasuredRate) {
  for (const double rate : {0.025, 0.999, 2.9, 5.0}) {
    FakeTicks ticks(rate);
    TickClock clock(ticks, 100);
    ticks.Pass(10'000'000'000);
    const auto error = static_cast<int64_t>(clock.ToNs(ticks.Ticks()) - (ticks.ns() + 100));
    EXPECT_LT(std::abs(error), 10'000) << rate;  // a few counts of the first measurement
  }
}

TEST(TickClock, NeverGoesBackAndComesBackToTheTruth) {
  FakeTicks ticks(2.5);
  TickClock clock(ticks, 0);
  uint64_t last = 0;
  for (int second = 0; second < 200; second++) {
    ticks.set_rate(second < 100 ? 2.5 : 2.5001);  // 40 ppm
    for (int i = 0; i < 10; i++) {
      ticks.Pass(100'000'000);
      const uint64_t now = clock.ToNs(ticks.Ticks());
      EXPECT_GT(now, last);
      last = now;
    }
    clock.Calibrate();
    EXPECT_GE(clock.ToNs(ticks.Ticks()), last);
  }
  const uint64_t now = clock.ToNs(ticks.Ticks());
  EXPECT_LT(std::abs(static_cast<int64_t>(now - ticks.ns())), 1000);
}

TEST(TickClock, MonotonicIsTakenAsItIs) {
  MachineTicks ticks(WEFT_CLOCK_MONOTONIC);
  TickClock clock(ticks, 1000);
  clock.Calibrate();
  EXPECT_EQ(clock.ToNs(123'456'789), 123'457'789U);
  EXPECT_EQ(clock.TicksIn(20'000'000), 20'000'000U);
}

TEST(TickClock, TheMachinesCounterAgreesWithItsClock) {
  MachineTicks ticks(WEFT_CLOCK_TSC);
  TickClock clock(ticks, 0);
  MachineTicks mono(WEFT_CLOCK_MONOTONIC);
  const uint64_t before = mono.Ticks();
  const uint64_t converted = clock.ToNs(clock.Now());
  const uint64_t after = mono.Ticks();
  constexpr uint64_t kMeasureError = 1'000'000;
  EXPECT_GE(converted + kMeasureError, before);
  EXPECT_LE(converted, after + kMeasureError);
}

}  // namespace
}  // namespace weft::ring
