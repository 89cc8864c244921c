// SPDX-License-Identifier: Apache-2.0
// Kernel channels over a back end that is not weft.ko: what they ask of it, and what answers do.
#include "node-agent/agent/kernel/kernel_channels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <variant>
#include <vector>

namespace weft::agent {
namespace {

constexpr uint64_t kChannel = 7;
constexpr uint64_t kInstance = 0x1234;

UniqueFd Memory() { return UniqueFd(memfd_create("backend", MFD_CLOEXEC)); }

// Notes what it is asked for, and does nothing.
class FakeBackend final : public kernel::Backend {
 public:
  mutable std::vector<std::string> calls;
  kernel::Support support{.features = UINT32_MAX, .clocks = 1U << WEFT_CLOCK_MONOTONIC};
  Status event_result;

  Result<kernel::Support> Probe() const override { return support; }
  Result<UniqueFd> MakeSession(bool all) const override {
    calls.emplace_back(all ? "session all" : "session");
    return Memory();
  }
  Status ChangeScope(const UniqueFd& /*session*/, uint64_t cgroup,
                     weft_kernel_scope_change change) const override {
    calls.push_back((change == WEFT_KERNEL_SCOPE_ADD ? "+" : "-") + std::to_string(cgroup));
    return {};
  }
  Status Track(const UniqueFd& /*session*/, const kernel::Trackers& /*trackers*/) const override {
    return {};
  }
  Status Switch(const UniqueFd& /*session*/, bool on) const override {
    calls.emplace_back(on ? "on" : "off");
    return {};
  }
  Result<kernel::SessionState> StateOf(const UniqueFd& /*session*/) const override {
    return kernel::SessionState{.stopped = "it stopped", .missed_anywhere = 3};
  }
  Status DumpState(const UniqueFd& /*session*/, uint64_t /*cgroup*/) const override { return {}; }
  Result<UniqueFd> MakeRing(const UniqueFd& /*session*/, const kernel::Ring& ring) const override {
    calls.push_back("ring of clock " + std::to_string(ring.clock));
    if (!support.Offers(ring.clock)) return Fail(ErrorCode::kUnsupported, "no such clock");
    UniqueFd made = Memory();
    weft_ring_header header{};
    header.instance = kInstance;
    EXPECT_EQ(pwrite(made.get(), &header, sizeof(header), 0), ssize_t{sizeof(header)});
    return made;
  }
  Status AddEvent(const UniqueFd& /*ring*/, const kernel::Event& event) const override {
    calls.push_back(event.name);
    return event_result;
  }
};

class KernelChannelsTest : public testing::Test {
 protected:
  Status Start(uint32_t clock = WEFT_CLOCK_MONOTONIC) {
    return channels_.Start({.clock = clock, .channel_id = kChannel}, {{.name = "sched_switch"}},
                           {.cgroups = {5, 6}});
  }

  FakeBackend backend_;
  std::vector<ipc::Message> said_;
  KernelChannels channels_{[this](ipc::Message message) { said_.push_back(std::move(message)); },
                           backend_};
};

TEST_F(KernelChannelsTest, StartAsksForSessionScopeRingAndEventsInThisOrder) {
  ASSERT_TRUE(Start());
  EXPECT_EQ(backend_.calls,
            (std::vector<std::string>{"session", "+5", "+6",
                                      "ring of clock " + std::to_string(WEFT_CLOCK_MONOTONIC),
                                      "sched_switch"}));
  EXPECT_EQ(channels_.Find(kChannel).instance, kInstance);
  EXPECT_EQ(said_.size(), 2U) << "the keeper holds the session and the ring";
}

TEST_F(KernelChannelsTest, TakesTheMonotonicClockWhereTheOtherIsNotOfferedAnyMore) {
  ASSERT_TRUE(Start(WEFT_CLOCK_TSC));
  EXPECT_EQ(backend_.calls.at(3), "ring of clock " + std::to_string(WEFT_CLOCK_TSC));
  EXPECT_EQ(backend_.calls.at(4), "ring of clock " + std::to_string(WEFT_CLOCK_MONOTONIC));
}

TEST_F(KernelChannelsTest, LeavesNothingWhereAnEventIsRefused) {
  backend_.event_result = Fail(ErrorCode::kNotFound, "no such tracepoint");
  EXPECT_FALSE(Start());
  EXPECT_FALSE(channels_.Has(kChannel));
  EXPECT_TRUE(said_.empty());
}

TEST_F(KernelChannelsTest, AcceptsAnEventWhoseTwinExists) {
  ASSERT_TRUE(Start());
  backend_.event_result = Fail(ErrorCode::kConflict, "its twin is there");
  EXPECT_TRUE(channels_.AddEvent(kChannel, {}));
  backend_.event_result = Fail(ErrorCode::kInvalid, "broken");
  EXPECT_FALSE(channels_.AddEvent(kChannel, {}));
}

TEST_F(KernelChannelsTest, ReportsOnceThatASessionStopped) {
  ASSERT_TRUE(Start());
  const auto news = channels_.TakeNews();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].stopped, "it stopped");
  EXPECT_EQ(news[0].missed_anywhere, 3U);
  EXPECT_TRUE(channels_.TakeNews().empty());
}

}  // namespace
}  // namespace weft::agent
