// SPDX-License-Identifier: GPL-2.0-only
// Records in the middle of records: interrupts, softirqs and NMIs come while a task's event is
// being written to the same ring; CPUs go and come back.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kmod/tests/filters.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr unsigned kThreads = 4;
// System calls: interrupts are on while one is recorded.
const Source& Ours() { return Sources()[1]; }

void Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  EXPECT_TRUE(file) << path;
}

// Makes all CPUs show what they do: the first one asks the others by an NMI, whose handler counts
// it as its own.
void AskOthersByNmi() {
  const OnCpu first(0);
  Write("/proc/sysrq-trigger", "l");
}

// One ring with events of every level of context: those that are there are in `ids`.
struct Mixed {
  Recording recording;
  std::map<std::string, uint16_t> ids;
  std::vector<UniqueFd> events;

  Mixed() {
    weft_kernel_channel channel = RightChannel();
    channel.slot_shift = 25;
    channel.subbuf_shift = 17;
    recording = Record(Ours().event(), channel);
    for (const char* name :
         {"sys_enter", "sys_exit", "sched_switch", "sched_waking", "irq_handler_entry",
          "softirq_entry", "softirq_exit", "timer_start", "hrtimer_start", "local_timer_entry",
          "reschedule_entry", "nmi_handler"}) {
      Event event = Event::Tracepoint(name);
      event.raw().subjects = 0;  // of every task that is interrupted
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

// The ring has room for all that the storm makes, were it on one CPU.
void RecordEachLevelWhole(uint64_t count) {
  const Mixed mixed;
  ASSERT_TRUE(mixed.recording.valid());
  for (const char* name : {"sched_switch", "softirq_entry", "local_timer_entry", "nmi_handler"})
    ASSERT_EQ(mixed.ids.count(name), 1U) << name;
  RingView view(mixed.recording.ring.get());
  ASSERT_EQ(Switch(mixed.recording.session.get(), 1), 0);
  Counts counts;
  {
    Storm storm(Ours(), kThreads, count);
    for (int i = 0; !storm.over() || i < 20; i++) {
      if (i % 50 == 0) AskOthersByNmi();
      counts.Drain(view);
    }
  }
  ASSERT_EQ(Switch(mixed.recording.session.get(), 0), 0);
  counts.Drain(view);

  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(counts.read, view.Committed());
  for (const char* name : {"sched_switch", "softirq_entry", "local_timer_entry", "nmi_handler"})
    EXPECT_GT(counts.by_event[mixed.ids.at(name)], 0U) << name;
  EXPECT_EQ(view.Discarded(), 0U);
  EXPECT_EQ(counts.by_event[mixed.recording.event_id], kThreads * count);
}

TEST(NestingTest, RecordsOfInterruptsAndNmisAreWholeAndInOrder) {
  for (uint64_t round = 0; round < Scaled(1); round++) RecordEachLevelWhole(100'000);
}

// Timers that expire one after the other. Each makes one signal, in an interrupt. Threads that are
// made while it lives leave the signal to it.
class Alarms {
 public:
  Alarms() {
    ::sigemptyset(&alarm_);
    ::sigaddset(&alarm_, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm_, &before_);
    thread_ = std::thread([this] { Run(); });
  }
  ~Alarms() { Stop(); }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  // Returns how many there were.
  uint64_t Stop() {
    if (!thread_.joinable()) return count_;
    stop_ = true;
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    return count_;
  }

 private:
  void Run() {
    timer_t timer{};
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGALRM;
    ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 200'000}};
    int signal = 0;
    for (; !stop_; count_++) {
      EXPECT_EQ(::timer_settime(timer, 0, &soon, nullptr), 0);
      ::sigwait(&alarm_, &signal);
    }
    ::timer_delete(timer);
  }

  sigset_t alarm_{}, before_{};
  std::atomic<bool> stop_{false};
  uint64_t count_ = 0;
  std::thread thread_;
};

// One ring with an event of three levels each: our system calls; the signals of Alarms, in
// interrupts; what NMIs answer that AskOthersByNmi sent, and no others. Filters keep all else out
// before it is counted.
struct Known {
  Recording recording;
  UniqueFd alarm, nmi;
  uint16_t alarm_id = 0, nmi_id = 0;

  explicit Known(uint32_t mode) {
    weft_kernel_channel channel = RightChannel();
    channel.mode = mode;
    channel.slot_shift = 20;
    channel.subbuf_shift = 16;
    recording = Record(Ours().event(), channel);
    alarm = Add("signal_generate", 0, "value == " + std::to_string(SIGALRM), alarm_id);
    // Argument 2 is the number of handlers that took the NMI. The first CPU takes every NMI for its
    // own while it asks for one.
    nmi = Add("nmi_handler", 2, "value == 1 && $ctx.cpu_id != 0", nmi_id);
  }

 private:
  [[nodiscard]] UniqueFd Add(const char* name, uint8_t argument, const std::string& filter,
                             uint16_t& id) const {
    Event event = Event::Tracepoint(name);
    event.raw().subjects = 0;  // of every task that is interrupted
    event.Field("value", argument, sizeof(int)).Filter(Compiled(filter));
    UniqueFd made(event.AddTo(recording.ring.get()));
    EXPECT_TRUE(made) << name;
    id = static_cast<uint16_t>(event.raw().event_id);
    return made;
  }
};

// Makes events of Known's three levels; returns how many.
uint64_t MakeKnown(uint64_t count, const std::function<void()>& meanwhile) {
  const auto others = static_cast<uint64_t>(Cpus() - 1);
  uint64_t nmis = others;
  Alarms alarms;
  AskOthersByNmi();
  {
    Storm storm(Ours(), kThreads, count);
    while (!storm.over()) {
      meanwhile();
      ::usleep(50'000);
      AskOthersByNmi();
      nmis += others;
    }
  }
  // An NMI answers before it is recorded: where this thread runs, it is over.
  for (long cpu = 0; cpu < Cpus(); cpu++) const OnCpu visit(cpu);
  return kThreads * count + alarms.Stop() + nmis;
}

TEST(NestingTest, EachEventOfTasksInterruptsAndNmisIsRecordedOrCounted) {
  const Known known(WEFT_RING_DISCARD);
  ASSERT_TRUE(known.recording.valid());
  RingView view(known.recording.ring.get());
  ASSERT_EQ(Switch(known.recording.session.get(), 1), 0);
  Counts counts;
  uint64_t made = MakeKnown(Scaled(100'000), [&] { counts.Drain(view); });
  made += MakeKnown(Scaled(100'000), [] {});  // four times what the ring has room for
  ASSERT_EQ(Switch(known.recording.session.get(), 0), 0);
  counts.Drain(view);

  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(counts.read, view.Committed());
  for (const uint16_t id : {known.recording.event_id, known.alarm_id, known.nmi_id})
    EXPECT_GT(counts.by_event[id], 0U) << id;
  EXPECT_GT(view.Discarded(), 0U);
  EXPECT_EQ(counts.read + view.Discarded(), made);
}

TEST(NestingTest, OverwriteModeWithInterruptsCountsExactly) {
  const Known known(WEFT_RING_OVERWRITE);
  ASSERT_TRUE(known.recording.valid());
  RingView view(known.recording.ring.get());
  ASSERT_EQ(Switch(known.recording.session.get(), 1), 0);
  const uint64_t made = MakeKnown(Scaled(200'000), [] {});
  ASSERT_EQ(Switch(known.recording.session.get(), 0), 0);
  Counts counts;
  counts.Drain(view);
  EXPECT_EQ(view.problem(), "");
  EXPECT_GT(view.overwritten(), 0U);
  EXPECT_EQ(counts.read + view.overwritten(), view.Committed());
  EXPECT_EQ(view.Committed() + view.Discarded(), made);
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
