// SPDX-License-Identifier: GPL-2.0-only
// Filters that come from user space: what the compiler makes is taken, and 100,000 programs that
// were spoilt are refused or run, on an event that comes all the time, and nothing happens to the
// kernel. What a spoilt program means is unknown. WEFT_FUZZ_SEED replays a run's programs.
// It runs in the kernels that fuzz_test.cc names.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include "kmod/tests/filters.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_event.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kPrograms = 100'000;
constexpr size_t kAtOnce = 16;         // events with spoilt filters that are attached
constexpr uint64_t kOfOneRing = 2000;  // events, before it is made anew: descriptions stay

void Traffic(uint64_t value) {
  static constexpr std::array<const char*, 5> kTexts = {"axxb", "what?", "x", "very long\\", ""};
  CallUserEvent(value % 80, kTexts[value % kTexts.size()], value % 5);
}

class FilterFuzzTest : public testing::Test {
 protected:
  UniqueFd device_ = OpenDevice();
  UniqueFd session_, ring_, unfiltered_;

  // Starts a session with the event itself, so that other events that are attached turn no
  // tracepoint on or off.
  void Start() {
    session_ = OpenSession(device_.get());
    ring_ = OpenRing(session_.get());
    Event event = UserEvent();
    unfiltered_ = UniqueFd(event.AddTo(ring_.get()));
    ASSERT_TRUE(unfiltered_);
    ASSERT_EQ(Switch(session_.get(), 1), 0);
  }

  [[nodiscard]] int Add(std::vector<uint8_t> filter) const {
    Event event = UserEvent();
    event.Filter(std::move(filter));
    return event.AddTo(ring_.get());
  }
};

TEST_F(FilterFuzzTest, CompiledProgramsAreAcceptedAndMatchTheirExpressions) {
  Start();
  for (const std::string& expression : UserEventExpressions()) {
    const UniqueFd event(Add(Compiled(expression)));
    EXPECT_TRUE(event) << expression;
  }
  EXPECT_EQ(Add(Compiled("policy == 1.5")), -EOPNOTSUPP) << "the kernel has no floats";
  const auto records = [this](const std::string& expression) {
    Start();
    unfiltered_.reset();
    const UniqueFd event(Add(Compiled(expression)));
    EXPECT_TRUE(event) << expression;
    const RingView view(ring_.get());
    CallUserEvent(6, "axxb", 3);
    return view.Committed();
  };
  EXPECT_EQ(records("policy == 6 && text == 'a*b' && list[1] == 120 && bytes[3] == 98"), 1U);
  EXPECT_EQ(records("policy == 6 && text == 'a*c'"), 0U);
  EXPECT_EQ(records("list[3] == 98"), 0U) << "beyond the sequence";
  EXPECT_EQ(records("policy << 64 == 0 || policy"), 0U) << "false where it is met";
  std::array<char, WEFT_CONTEXT_PROCNAME_SIZE> name{};
  ASSERT_EQ(::prctl(PR_GET_NAME, name.data()), 0);
  EXPECT_EQ(records(std::string("count == 3 && $ctx.procname == '") + name.data() + "'"), 1U);
}

TEST_F(FilterFuzzTest, DamagedProgramsAreRefusedOrRunWithoutHarm) {
  const char* text = std::getenv("WEFT_FUZZ_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
  std::cout << "WEFT_FUZZ_SEED=" << seed << std::endl;
  std::mt19937_64 random(seed);
  const Filters filters(UserEventExpressions());
  std::map<int, uint64_t> answers;
  uint64_t accepted = 0;
  const Noise noise(Traffic, 1);
  std::deque<UniqueFd> events;
  for (uint64_t i = 0; i < Scaled(kPrograms); i++) {
    if (accepted % kOfOneRing == 0) {
      events.clear();
      Start();
      accepted++;
    }
    const int result = Add(filters.Spoilt(random));
    answers[result >= 0 ? 0 : -result]++;
    if (result < 0) continue;
    accepted++;
    events.emplace_back(result);
    Traffic(i);
    if (events.size() > kAtOnce) events.pop_front();
  }
  for (const auto& [error, count] : answers)
    std::cout << count << ": " << (error == 0 ? "taken" : std::strerror(error)) << std::endl;
  EXPECT_GT(answers[0], Scaled(kPrograms) / 20) << "hardly anything runs";
  EXPECT_GT(answers[EINVAL], Scaled(kPrograms) / 20) << "hardly anything is refused";
}

}  // namespace
}  // namespace weft::kmod
