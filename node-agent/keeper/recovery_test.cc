// SPDX-License-Identifier: Apache-2.0
// A component is started again at once, then ever later; silence and standing still end it; good
// health makes its failures forgotten.
#include "node-agent/keeper/recovery.h"

#include <gtest/gtest.h>

#include "lib/ipc/limits.h"

namespace weft::keeper {
namespace {

using std::chrono::milliseconds;
using Action = Recovery::Action;

class RecoveryTest : public testing::Test {
 protected:
  void Pass(milliseconds time) { now_ += time; }
  Action Due() { return recovery_.Due(now_); }
  void StartAndBeat() {
    ASSERT_EQ(Due(), Action::kStart);
    recovery_.Started(now_);
    recovery_.Heartbeat(now_, 0, 0);
    EXPECT_TRUE(recovery_.running());
  }

  Time now_ = Time() + milliseconds(1'000'000);
  Recovery recovery_;
};

TEST_F(RecoveryTest, FirstFailureIsMendedAtOnce) {
  StartAndBeat();
  recovery_.Died(now_, "killed by signal 9");
  EXPECT_EQ(recovery_.reason(), "killed by signal 9");
  EXPECT_EQ(Due(), Action::kStart);
  EXPECT_EQ(recovery_.restarts(), 0u);
  recovery_.Started(now_);
  EXPECT_EQ(recovery_.restarts(), 1u);
}

TEST_F(RecoveryTest, BacksOffAndSaysWhenItKeepsFailing) {
  milliseconds waited{0};
  for (uint32_t i = 1; i <= kFailuresToGiveUp; ++i) {
    while (Due() != Action::kStart) {
      Pass(milliseconds(10));
      waited += milliseconds(10);
    }
    recovery_.Started(now_);
    recovery_.Died(now_, "exit status 1");
    EXPECT_EQ(recovery_.failures(), i);
    EXPECT_EQ(recovery_.given_up(), i == kFailuresToGiveUp);
  }
  EXPECT_EQ(waited, kFirstBackoff * (1 + 2 + 4 + 8));
  Pass(kGivenUpRetry - milliseconds(1));
  EXPECT_EQ(Due(), Action::kNone);
  Pass(milliseconds(1));
  EXPECT_EQ(Due(), Action::kStart);
}

TEST_F(RecoveryTest, SilenceAfterTheStartAndLaterIsTheEnd) {
  ASSERT_EQ(Due(), Action::kStart);
  recovery_.Started(now_);
  Pass(ipc::kHeartbeatTimeout - milliseconds(1));
  EXPECT_EQ(Due(), Action::kNone);
  Pass(milliseconds(1));
  EXPECT_EQ(Due(), Action::kKill);
  EXPECT_EQ(Due(), Action::kKill);
  recovery_.Died(now_, "killed by signal 9");
  EXPECT_EQ(recovery_.reason(), "no sign of life after its start");
  StartAndBeat();
  Pass(ipc::kHeartbeatTimeout);
  EXPECT_EQ(Due(), Action::kKill);
}

TEST_F(RecoveryTest, HeartbeatsWithoutProgressAreNoHealth) {
  StartAndBeat();
  recovery_.Heartbeat(now_, 5, 100);
  for (milliseconds t{0}; t < ipc::kProgressTimeout - ipc::kHeartbeatInterval;
       t += ipc::kHeartbeatInterval) {
    Pass(ipc::kHeartbeatInterval);
    recovery_.Heartbeat(now_, 5, 100);
    ASSERT_EQ(Due(), Action::kNone);
  }
  Pass(ipc::kHeartbeatInterval);
  EXPECT_EQ(Due(), Action::kKill);
}

TEST_F(RecoveryTest, IdleIsHealthy) {
  StartAndBeat();
  for (int i = 0; i < 100; ++i) {
    Pass(ipc::kHeartbeatInterval);
    recovery_.Heartbeat(now_, 5, 0);
    ASSERT_EQ(Due(), Action::kNone);
  }
  // Work that comes after a long rest has its full time.
  recovery_.Heartbeat(now_, 5, 1);
  EXPECT_EQ(Due(), Action::kNone);
}

TEST_F(RecoveryTest, GoodHealthMakesFailuresForgotten) {
  StartAndBeat();
  recovery_.Died(now_, "x");
  StartAndBeat();
  for (milliseconds t{0}; t < kHealthyTime; t += ipc::kHeartbeatInterval) {
    Pass(ipc::kHeartbeatInterval);
    recovery_.Heartbeat(now_, 0, 0);
  }
  EXPECT_EQ(Due(), Action::kNone);
  EXPECT_EQ(recovery_.failures(), 0u);
}

}  // namespace
}  // namespace weft::keeper
