// SPDX-License-Identifier: GPL-2.0-only
// A statedump's frame (lib/abi/kernel.h, STATEDUMP): begun and ended, with a fence each, complete
// in rings of any size as long as they are read, and over where the caller or the session is.
// What it records about things is tested in tests/vm.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <iterator>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"
#include "kmod/tests/user_event.h"

namespace weft::kmod {
namespace {

weft_kernel_channel SmallChannel() {
  weft_kernel_channel channel = RightChannel();
  channel.slot_shift = 14;
  channel.subbuf_shift = 12;
  return channel;
}

// A session that records all tasks, with events of these states. Their first field is the argument
// `arg`.
class Dumper {
 public:
  explicit Dumper(const std::vector<std::pair<uint32_t, uint8_t>>& states,
                  weft_kernel_channel channel = SmallChannel())
      : ring_(OpenRing(session_.get(), channel)), view_(ring_.get()) {
    for (const auto& [state, argument] : states) {
      Event event = Event::State(state);
      event.Field("value", argument);
      events_.emplace_back(event.AddTo(ring_.get()));
      EXPECT_TRUE(events_.back());
      states_[static_cast<uint16_t>(event.raw().event_id)] = state;
    }
    EXPECT_EQ(Switch(session_.get(), 1), 0);
  }

  [[nodiscard]] int session() const { return session_.get(); }
  RingView& view() { return view_; }
  // Adds the records since the last call to seen(): states by time.
  void Read() {
    view_.DrainAll([this](uint32_t, const SeenRecord& record) {
      seen_.emplace(record.time, std::pair{states_.at(record.event), record.Field(0)});
    });
    EXPECT_EQ(view_.problem(), "");
  }
  [[nodiscard]] const auto& seen() const { return seen_; }
  // Returns the time of the last record but one.
  [[nodiscard]] uint64_t TimeBeforeTheLast() const {
    return seen_.size() < 2 ? 0 : std::prev(seen_.end(), 2)->first;
  }
  [[nodiscard]] size_t Count(uint32_t state) const {
    size_t count = 0;
    for (const auto& [time, record] : seen_) count += record.first == state ? 1 : 0;
    return count;
  }

 private:
  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get());
  UniqueFd ring_;
  RingView view_;
  std::vector<UniqueFd> events_;
  std::map<uint16_t, uint32_t> states_;
  std::multimap<uint64_t, std::pair<uint32_t, uint64_t>> seen_;
};

const std::vector<std::pair<uint32_t, uint8_t>> kThreads = {
    {WEFT_KERNEL_STATE_START, 0}, {WEFT_KERNEL_STATE_THREAD, 2}, {WEFT_KERNEL_STATE_END, 0}};
// States of which a process with a Crowd has more than small rings hold.
const std::vector<std::pair<uint32_t, uint8_t>> kMuch = {{WEFT_KERNEL_STATE_START, 0},
                                                         {WEFT_KERNEL_STATE_THREAD, 2},
                                                         {WEFT_KERNEL_STATE_FILE, 2},
                                                         {WEFT_KERNEL_STATE_MAPPING, 1},
                                                         {WEFT_KERNEL_STATE_END, 2}};

// Mappings of this process that the kernel cannot merge.
class Crowd {
 public:
  Crowd() : map_(::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (size_t at = 0; at < kBytes; at += 2 * kPage)
      EXPECT_EQ(::mprotect(static_cast<char*>(map_) + at, kPage, PROT_READ), 0);
  }
  ~Crowd() { ::munmap(map_, kBytes); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  static constexpr size_t kPage = 4096;
  static constexpr size_t kCount = 4000;
  static constexpr size_t kBytes = kCount * kPage;

 private:
  void* map_;
};

TEST(StatedumpTest, BeginsAndEndsByTime) {
  Dumper dumper(kThreads, RightChannel());
  for (uint64_t number = 1; number <= 3; number++) {
    ASSERT_EQ(Statedump(dumper.session()), 0);
    dumper.Read();
  }
  ASSERT_GT(dumper.seen().size(), 6U);
  uint64_t begun = 0, ended = 0;
  for (const auto& [time, record] : dumper.seen()) {
    const auto& [state, value] = record;
    if (state == WEFT_KERNEL_STATE_START) {
      EXPECT_EQ(begun, ended);
      EXPECT_EQ(value, ++begun);
    } else if (state == WEFT_KERNEL_STATE_END) {
      EXPECT_EQ(value, ++ended);
    }
    EXPECT_TRUE(begun > ended || state == WEFT_KERNEL_STATE_END);
  }
  EXPECT_EQ(ended, 3U);
}

TEST(StatedumpTest, ADumpOfACgroupHasExactlyItsTasks) {
  Dumper dumper({{WEFT_KERNEL_STATE_START, 0},
                 {WEFT_KERNEL_STATE_CPU, 0},
                 {WEFT_KERNEL_STATE_THREAD, 2},
                 {WEFT_KERNEL_STATE_END, 1}},
                RightChannel());
  const Cgroup cgroup("weft-statedump"), empty("weft-statedump-empty");
  EXPECT_EQ(Statedump(dumper.session(), ~0ULL), -ENOENT);
  EXPECT_EQ(Statedump(dumper.session(), empty.id()), 0);
  dumper.Read();
  EXPECT_TRUE(dumper.seen().empty()) << "the cgroup is empty";
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  EXPECT_TRUE(cgroup.Take(child));
  EXPECT_EQ(Statedump(dumper.session(), cgroup.id()), 0);
  dumper.Read();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::vector<std::pair<uint32_t, uint64_t>> records;
  for (const auto& [time, record] : dumper.seen()) records.push_back(record);
  const std::vector<std::pair<uint32_t, uint64_t>> expected = {
      {WEFT_KERNEL_STATE_START, 1},
      {WEFT_KERNEL_STATE_THREAD, static_cast<uint64_t>(child)},
      {WEFT_KERNEL_STATE_END, 1}};
  EXPECT_EQ(records, expected);
}

// Reads as long as it lives, and all at its end.
class Reader {
 public:
  explicit Reader(Dumper& dumper)
      : thread_([this, &dumper] {
          do {
            over_now_ = over_;
            dumper.Read();
            ::usleep(5000);
          } while (!over_now_);
        }) {}
  ~Reader() {
    over_ = true;
    thread_.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  std::atomic<bool> over_{false};
  bool over_now_ = false;
  std::thread thread_;
};

TEST(StatedumpTest, WaitsForAReaderWhereTheRingIsFull) {
  const Crowd crowd;
  Dumper dumper(kMuch);
  {
    const Reader reader(dumper);
    EXPECT_EQ(Statedump(dumper.session()), 0);
  }
  EXPECT_EQ(dumper.view().Discarded(), 0U);
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_START), 1U);
  ASSERT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), 1U);
  EXPECT_EQ(dumper.seen().rbegin()->second,
            (std::pair<uint32_t, uint64_t>{WEFT_KERNEL_STATE_END, 0}))
      << "nothing is missing";
  EXPECT_GT(dumper.Count(WEFT_KERNEL_STATE_MAPPING), Crowd::kCount);
}

TEST(StatedumpTest, EndsWithoutAReader) {
  const Crowd crowd;
  Dumper dumper(kMuch);
  EXPECT_EQ(Statedump(dumper.session()), 0);
  EXPECT_GT(dumper.view().Discarded(), 0U);
}

TEST(StatedumpTest, OverwritesWhereTheRingDoes) {
  const Crowd crowd;
  weft_kernel_channel channel = SmallChannel();
  channel.mode = WEFT_RING_OVERWRITE;
  Dumper dumper(kMuch, channel);
  EXPECT_EQ(Statedump(dumper.session()), 0);
  EXPECT_EQ(dumper.view().Discarded(), 0U);
  dumper.Read();
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), 1U);
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_START), 0U) << "it was overwritten";
}

TEST(StatedumpTest, ASignalEndsIt) {
  const Crowd crowd;
  Dumper dumper(kMuch);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGALRM, [](int) {});
    const itimerval soon{.it_interval = {.tv_sec = 0, .tv_usec = 100'000},
                         .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    ::_exit(Statedump(dumper.session()) == -EINTR ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  dumper.Read();
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_START), 1U);
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), 0U);
}

TEST(StatedumpTest, TheSwitchEndsItAndThereIsOneAtATime) {
  const Crowd crowd;
  Dumper dumper(kMuch);
  std::atomic<int> result = 1;
  std::thread thread([&] { result = Statedump(dumper.session()); });
  while (dumper.view().Committed() == 0) ::usleep(1000);
  EXPECT_EQ(Statedump(dumper.session()), -EBUSY);
  EXPECT_EQ(Switch(dumper.session(), 0), 0);
  thread.join();
  EXPECT_EQ(result, -ESHUTDOWN);
  dumper.Read();
  EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), 0U);
}

// The worker repeats this: tasks, descriptors and mappings come and go.
void ComeAndGo() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return;
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {}).join();
    ::execl("/bin/true", "/bin/true", nullptr);
    ::_exit(1);
  }
  for (const int end : ends) ::close(end);
  ::waitpid(child, nullptr, 0);
}

TEST(StatedumpTest, HasEachRemainingTaskOnceWhileOthersComeAndGo) {
  std::vector<std::pair<uint32_t, uint8_t>> all;
  for (uint32_t state = 1; state <= WEFT_KERNEL_STATE_MAX; state++)
    all.emplace_back(state, state == WEFT_KERNEL_STATE_THREAD ? 2 : 0);
  weft_kernel_channel channel = RightChannel();
  channel.slot_shift = 21;
  channel.subbuf_shift = 18;
  std::atomic<bool> over = false;
  std::vector<std::thread> storm;
  for (int i = 0; i < 2; i++)
    storm.emplace_back([&over] {
      while (!over) ComeAndGo();
    });
  const auto self = static_cast<uint64_t>(::getpid());
  for (uint64_t round = 0; round < Scaled(5); round++) {
    Dumper dumper(all, channel);
    {
      const Reader reader(dumper);
      EXPECT_EQ(Statedump(dumper.session()), 0);
    }
    EXPECT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), 1U);
    EXPECT_EQ(dumper.view().Discarded(), 0U);
    std::multiset<uint64_t> threads;
    for (const auto& [time, record] : dumper.seen())
      if (record.first == WEFT_KERNEL_STATE_THREAD) threads.insert(record.second);
    EXPECT_EQ(threads.count(self), 1U);
    EXPECT_EQ(threads.count(1), 1U);
  }
  over = true;
  for (std::thread& thread : storm) thread.join();
}

// A thread on the last CPU, whose events are large: most of its time it is between a record's time
// and its commit. If the emulator lets CPUs take turns, the thread is therefore mostly stopped at
// that point while others run.
class LargeEvents {
 public:
  explicit LargeEvents(int session)
      : ring_(OpenRing(session, Channel())), view_(ring_.get()), event_(Large(ring_.get())) {
    EXPECT_TRUE(event_);
    thread_ = std::thread([this] {
      const OnCpu last(Cpus() - 1);
      const std::vector<char> text(WEFT_FETCH_MAX_STRING + 1, 'x');
      while (!over_) CallUserEvent(1, text.data(), WEFT_FETCH_MAX_STRING);
    });
  }
  ~LargeEvents() { Stop(); }
  LargeEvents(const LargeEvents&) = delete;
  LargeEvents& operator=(const LargeEvents&) = delete;

  void Stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Reads all records so far. Later records must not be older than `time`.
  void NothingComesFromBefore(uint64_t time) {
    Read();
    from_ = time;
  }
  void Read() {
    read_ += view_.DrainAll([this](uint32_t, const SeenRecord& record) {
      if (record.time < from_) late_++;
    });
    EXPECT_EQ(view_.problem(), "");
  }
  [[nodiscard]] uint64_t read() const { return read_; }
  [[nodiscard]] uint64_t late() const { return late_; }

 private:
  static weft_kernel_channel Channel() {
    weft_kernel_channel channel = RightChannel();
    channel.slot_shift = 24;
    return channel;
  }
  static UniqueFd Large(int ring) {
    Event event = UserEvent(WEFT_FETCH_MAX_STRING);
    return UniqueFd(event.AddTo(ring));
  }

  UniqueFd ring_;
  RingView view_;
  UniqueFd event_;
  uint64_t from_ = 0, read_ = 0, late_ = 0;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

uint64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Tests both fences. When START is in its ring, events of another CPU that began before the call
// are in theirs. When END is in its ring, so are those that began before the dump's last record.
TEST(StatedumpTest, StartAndEndAreFences) {
  if ((Features() & WEFT_KERNEL_SYSCALLS) == 0) GTEST_SKIP() << "no system calls";
  Dumper dumper(kThreads, RightChannel());
  LargeEvents others(dumper.session());
  const OnCpu first(0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (uint64_t round = 1; round <= 3 || std::chrono::steady_clock::now() < end; round++) {
    others.Read();
    std::atomic<int> result = 1;
    const uint64_t called = Now();
    std::thread thread([&] { result = Statedump(dumper.session()); });
    // The dumping thread shares this CPU, so its records are visible here when it waits.
    const auto wait_for = [&](uint32_t state) {
      bool over = false;
      do {
        ::sched_yield();
        over = result <= 0;
        dumper.Read();
      } while (dumper.Count(state) < round && !over);
    };
    wait_for(WEFT_KERNEL_STATE_START);
    others.NothingComesFromBefore(called);
    wait_for(WEFT_KERNEL_STATE_END);
    others.NothingComesFromBefore(dumper.TimeBeforeTheLast());
    thread.join();
    ASSERT_EQ(result, 0);
    ASSERT_EQ(dumper.Count(WEFT_KERNEL_STATE_END), round);
  }
  others.Stop();
  others.Read();
  EXPECT_GT(others.read(), 0U);
  EXPECT_EQ(others.late(), 0U);
}

}  // namespace
}  // namespace weft::kmod
