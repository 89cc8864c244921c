// SPDX-License-Identifier: GPL-2.0-only
// Records in the middle of records: interrupts, softirqs and NMIs come while a task's event is being
// written to the same ring; CPUs go and come back.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr unsigned kThreads = 4;
const Source& Ours() { return Sources()[0]; }

void Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  EXPECT_TRUE(file) << path;
}

// One ring with events of every level of context: those that are there are in `ids`.
struct Mixed {
  Recording recording;
  std::map<std::string, uint16_t> ids;
  std::vector<UniqueFd> events;

  explicit Mixed(uint32_t mode) {
    weft_kernel_channel channel = RightChannel();
    channel.mode = mode;
    channel.slot_shift = 20;
    channel.subbuf_shift = 16;
    recording = Record(Ours().event(), channel);
    for (const char* name :
         {"sys_enter", "sys_exit", "sched_switch", "sched_waking", "irq_handler_entry",
          "softirq_entry", "softirq_exit", "timer_start", "hrtimer_start", "local_timer_entry",
          "reschedule_entry", "nmi_handler"}) {
      Event event = Event::Tracepoint(name);
      event.raw().subjects = 0;  // whoever is interrupted
      event.Field("first", 0);
      events.emplace_back(event.AddTo(recording.ring.get()));
      if (events.back()) ids[name] = static_cast<uint16_t>(event.raw().event_id);
    }
  }
};

// Counts records by event, and reads ours exactly.
struct Counts {
  std::map<uint16_t, uint64_t> by_event;
  uint64_t read = 0;

  void Drain(RingView& view) {
    read += view.DrainAll([this](uint32_t, const SeenRecord& record) { by_event[record.event]++; });
  }
};

TEST(NestingTest, RecordsOfInterruptsAndNmisAreWholeAndInOrder) {
  const Mixed mixed(WEFT_RING_DISCARD);
  ASSERT_TRUE(mixed.recording.valid());
  for (const char* name : {"sched_switch", "softirq_entry", "local_timer_entry", "nmi_handler"})
    EXPECT_EQ(mixed.ids.count(name), 1U) << name;
  RingView view(mixed.recording.ring.get());
  ASSERT_EQ(Switch(mixed.recording.session.get(), 1), 0);
  const uint64_t count = Scaled(200'000);
  Counts counts;
  {
    Storm storm(Ours(), kThreads, count);
    for (int i = 0; !storm.over() || i < 20; i++) {
      // All other CPUs show what they do: they are asked by an NMI.
      if (i % 50 == 0) Write("/proc/sysrq-trigger", "l");
      counts.Drain(view);
    }
  }
  ASSERT_EQ(Switch(mixed.recording.session.get(), 0), 0);
  counts.Drain(view);

  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(counts.read, view.Committed());
  for (const char* name : {"sched_switch", "softirq_entry", "local_timer_entry", "nmi_handler"})
    EXPECT_GT(counts.by_event[mixed.ids.at(name)], 0U) << name;
  const uint64_t ours = counts.by_event[mixed.recording.event_id];
  EXPECT_LE(ours, kThreads * count);
  EXPECT_GE(ours + view.Discarded(), kThreads * count);
}

TEST(NestingTest, OverwriteModeWithInterruptsCountsExactly) {
  const Mixed mixed(WEFT_RING_OVERWRITE);
  ASSERT_TRUE(mixed.recording.valid());
  RingView view(mixed.recording.ring.get());
  ASSERT_EQ(Switch(mixed.recording.session.get(), 1), 0);
  const uint64_t count = Scaled(200'000);
  {
    Storm storm(Ours(), kThreads, count);
    while (!storm.over()) {
      Write("/proc/sysrq-trigger", "l");
      ::usleep(100'000);
    }
  }
  ASSERT_EQ(Switch(mixed.recording.session.get(), 0), 0);
  Counts counts;
  counts.Drain(view);
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(counts.read + view.overwritten(), view.Committed());
  EXPECT_GE(view.Committed() + view.Discarded(), kThreads * count);
}

TEST(HotplugTest, NoRecordIsLostWhenACpuGoesAndComesBack) {
  const char* const online = "/sys/devices/system/cpu/cpu1/online";
  ASSERT_EQ(::access(online, W_OK), 0) << "one CPU only";
  const Recording recording = Record(Ours().event());
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  const uint64_t count = Scaled(200'000);
  Counts counts;
  {
    Storm storm(Ours(), kThreads, count);
    for (int i = 0; i < 5; i++) {
      Write(online, "0");
      counts.Drain(view);
      Write(online, "1");
      counts.Drain(view);
    }
    while (!storm.over()) counts.Drain(view);
  }
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  counts.Drain(view);
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(counts.read, view.Committed());
  EXPECT_EQ(view.Committed() + view.Discarded(), kThreads * count);
}

}  // namespace
}  // namespace weft::kmod
