// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/base/background_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>

namespace weft::agent {
namespace {

class BackgroundCallsTest : public ::testing::Test {
 protected:
  // Returns a call that lasts until the test says what it returns.
  BackgroundCalls<int>::Call Waiting() {
    return [answer = answer_.get_future().share()]() -> Result<int> { return answer.get(); };
  }
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::promise<int> answer_;
};

TEST_F(BackgroundCallsTest, TheLoopsThreadGetsTheResult) {
  BackgroundCalls<int> calls(loop_, 1);
  std::optional<int> got;
  std::thread::id caller;
  calls.Start(Waiting(), [&](const Result<int>& result) {
    got = result.value_or(0);
    caller = std::this_thread::get_id();
  });
  EXPECT_FALSE(got) << "it does not wait for the call";
  answer_.set_value(7);
  RunUntil([&] { return got.has_value(); });
  EXPECT_EQ(got, 7);
  EXPECT_EQ(caller, std::this_thread::get_id());
}

TEST_F(BackgroundCallsTest, RefusesACallBeyondTheLimitAtOnce) {
  BackgroundCalls<int> calls(loop_, 1);
  bool is_over = false;
  calls.Start(Waiting(), [&](const Result<int>&) { is_over = true; });
  ErrorCode refused{};
  calls.Start([]() -> Result<int> { return 1; },
              [&](const Result<int>& result) { refused = result.error().code; });
  EXPECT_EQ(refused, ErrorCode::kLimit);
  answer_.set_value(0);
  RunUntil([&] { return is_over; });
  std::optional<int> got;
  calls.Start([]() -> Result<int> { return 1; },
              [&](const Result<int>& result) { got = result.value_or(0); });
  RunUntil([&] { return got.has_value(); });
  EXPECT_EQ(got, 1) << "there is room again";
}

TEST_F(BackgroundCallsTest, ACallMayOutliveItsOwner) {
  const auto alive = std::make_shared<int>(7);
  bool was_told = false;
  {
    BackgroundCalls<int> calls(loop_, 1);
    calls.Start([alive, wait = Waiting()] { return wait(); },
                [&](const Result<int>&) { was_told = true; });
  }
  answer_.set_value(7);
  RunUntil([&] { return alive.use_count() == 1; });  // the thread is done with the call
  EXPECT_FALSE(was_told);
}

}  // namespace
}  // namespace weft::agent
