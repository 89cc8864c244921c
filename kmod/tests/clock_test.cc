// SPDX-License-Identifier: GPL-2.0-only
// Times of the module's records lie between what a program reads from the same clock before and
// after the event: kernel and user space have one time.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "lib/ring/tick_clock.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kCalls = 5'000;  // on each CPU, at the same time

struct Around {
  uint64_t before = 0, after = 0, time = 0;
};

// Makes `all.size()` events on one CPU, numbered, between two looks at the clock.
void Call(uint64_t cpu, uint32_t clock, std::vector<Around>& all) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  EXPECT_EQ(::sched_setaffinity(0, sizeof(set), &set), 0);
  ring::MachineTicks ticks(clock);
  for (uint64_t i = 0; i < all.size(); i++) {
    all[i].before = ticks.Ticks();
    ::syscall(SYS_sched_get_priority_max, 1, cpu << 32 | i);
    all[i].after = ticks.Ticks();
  }
}

void ExpectEnclosed(uint32_t clock) {
  weft_kernel_channel channel = RightChannel();
  channel.clock = clock;
  channel.slot_shift = 20;
  Event event = Event::SyscallEntry(SYS_sched_get_priority_max);
  event.Field("second", 1);
  const Recording recording = Record(std::move(event), channel);
  ASSERT_TRUE(recording.valid());
  const auto cpus = static_cast<uint64_t>(Cpus());
  std::vector<std::vector<Around>> all(cpus, std::vector<Around>(Scaled(kCalls)));
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  std::vector<std::thread> threads;
  for (uint64_t cpu = 0; cpu < cpus; cpu++)
    threads.emplace_back(&Call, cpu, clock, std::ref(all[cpu]));
  const auto use = [&](uint32_t cpu, const SeenRecord& record) {
    const uint64_t number = record.Field(0) & 0xffffffff;
    ASSERT_EQ(record.Field(0) >> 32, cpu);
    ASSERT_LT(number, all[cpu].size());
    all[cpu][number].time = record.time;
  };
  for (int i = 0; i < 10; i++) {
    view.DrainAll(use);
    ::usleep(10'000);
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  view.DrainAll(use);
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(view.Discarded(), 0U);
  uint64_t wrong = 0;
  for (const auto& calls : all) {
    for (const Around& call : calls) {
      if (call.before <= call.time && call.time <= call.after) continue;
      if (wrong++ < 10)
        ADD_FAILURE() << "before " << call.before << ", record " << call.time << ", after "
                      << call.after;
    }
  }
  EXPECT_EQ(wrong, 0U) << "of " << cpus * Scaled(kCalls);
}

TEST(ClockTest, MonotonicIsThatOfUserSpace) { ExpectEnclosed(WEFT_CLOCK_MONOTONIC); }

// The module offers an emulated machine's TSC only if the kernel is told to trust it
// (tsc=reliable).
TEST(ClockTest, TscIsThatOfUserSpace) { ExpectEnclosed(WEFT_CLOCK_TSC); }

}  // namespace
}  // namespace weft::kmod
