// SPDX-License-Identifier: GPL-2.0-only
// Hits that the kernel does not deliver, made by more calls at once than are kept until their
// return: where a session without a scope counts them, and where a session with a scope does, whose
// ring must not tell its reader about other tasks.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kKept = 512;    // WEFT_KRETPROBE_CALLS, WEFT_URETPROBE_CALLS
constexpr uint64_t kAllTasks = 1;  // the first cgroup
constexpr uint8_t kReturned = 7;
// Nothing else in a guest calls it.
constexpr const char* kFunction = "eventfd_read";

extern "C" [[gnu::noinline, gnu::noclone]] uint64_t WeftWaits(uint64_t file) {
  eventfd_t value = 0;
  ::eventfd_read(static_cast<int>(file), &value);
  return value;
}

// Threads that wait in WeftWaits, and thus in kFunction.
class Waiting {
 public:
  explicit Waiting(uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
      threads_.emplace_back([this] { WeftWaits(static_cast<uint64_t>(file_.get())); });
  }
  ~Waiting() { Release(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void Release() {
    ::eventfd_write(file_.get(), threads_.size());
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  UniqueFd file_{::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)};
  std::vector<std::thread> threads_;
};

// The entries and returns of a function, recorded by one session. Parameter: true if the session
// has no scope.
class MissedTest : public testing::TestWithParam<bool> {
 protected:
  // The kernel counts without atomics: on one CPU it is exact.
  void SetUp() override {
    ASSERT_EQ(::sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(first), &first), 0);
    if (!GetParam()) {
      ASSERT_EQ(Scope(session_.get(), WEFT_KERNEL_SCOPE_ADD, kAllTasks), 0);
    }
  }
  void TearDown() override { EXPECT_EQ(::sched_setaffinity(0, sizeof(before_), &before_), 0); }

  void Add(Event entry, Event exit) {
    entry.Field("first", 0);
    exit.Field("first", 0).Field("returned", kReturned);
    entry_ = UniqueFd(entry.AddTo(ring_.get()));
    exit_ = UniqueFd(exit.AddTo(ring_.get()));
    ASSERT_TRUE(entry_ && exit_);
    ASSERT_EQ(Switch(session_.get(), 1), 0);
  }
  void WaitForEntries(uint64_t count) const {
    while (view_.Committed() < count) ::usleep(1000);
    ::usleep(20'000);  // time for the last thread's way from its probe to where it waits
  }
  // Calls that return at once.
  void Call(uint64_t count) const {
    for (uint64_t i = 0; i < count; i++) WeftWaits(static_cast<uint64_t>(empty_.get()));
  }
  [[nodiscard]] uint64_t MissedAnywhere() const {
    weft_kernel_session_status status{};
    status.size = sizeof(status);
    EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SESSION_STATUS, &status), 0);
    return status.missed_anywhere;
  }
  [[nodiscard]] uint64_t MissedByEvent() const {
    weft_kernel_event_status status{};
    status.size = sizeof(status);
    EXPECT_EQ(Control(exit_.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
    return status.missed;
  }
  void ExpectMissed(uint64_t count, const char* what = "") const {
    SCOPED_TRACE(what);
    EXPECT_EQ(MissedAnywhere(), GetParam() ? 0 : count);
    EXPECT_EQ(view_.Missed(), GetParam() ? count : 0);
  }

  UniqueFd device_ = OpenDevice();
  UniqueFd session_ =
      OpenSession(device_.get(), GetParam() ? uint32_t{WEFT_KERNEL_SESSION_ALL} : 0U);
  UniqueFd ring_ = OpenRing(session_.get());
  RingView view_{ring_.get()};
  UniqueFd entry_, exit_;
  UniqueFd empty_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  cpu_set_t before_{};
};

TEST_P(MissedTest, ReturnsBeyondThoseThatTheKernelKeepsAreCounted) {
  Add(Event::Kprobe(kFunction), Event::Kretprobe(kFunction));
  Waiting waiting(kKept);
  WaitForEntries(kKept);
  ExpectMissed(0);
  Call(50);
  ExpectMissed(50);
  ASSERT_EQ(Switch(session_.get(), 0), 0);
  Call(10);
  ExpectMissed(50, "while it was off");
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  Call(5);
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  ExpectMissed(55);
  Call(2);
  waiting.Release();
  Call(3);
  ASSERT_EQ(Switch(session_.get(), 0), 0);
  ExpectMissed(57);
  EXPECT_EQ(MissedByEvent(), 67U);
  EXPECT_EQ(view_.Committed(), 2 * kKept + 57 + 2 * 3);
  EXPECT_EQ(view_.Discarded(), view_.Missed());
}

TEST_P(MissedTest, CountsWhatAnEventMissedBeforeItsEnd) {
  Add(Event::Kprobe(kFunction), Event::Kretprobe(kFunction));
  const Waiting waiting(kKept);
  WaitForEntries(kKept);
  Call(7);
  exit_.reset();
  ExpectMissed(7);
}

TEST_P(MissedTest, ReturnsOfAUserFunctionBeyondThoseThatAreKeptAreDiscardedInAnyRing) {
  const auto place = [] { return Locate(reinterpret_cast<const void*>(&WeftWaits)); };
  PlaceInFile entry = place();
  PlaceInFile exit = place();
  Add(Event::Uprobe(std::move(entry.file), entry.offset),
      Event::Uretprobe(std::move(exit.file), exit.offset));
  constexpr uint64_t kMore = 20;
  {
    const Waiting waiting(kKept + kMore);
    WaitForEntries(kKept + kMore);
    EXPECT_EQ(view_.Missed(), 0U);
  }
  ASSERT_EQ(Switch(session_.get(), 0), 0);
  EXPECT_EQ(view_.Missed(), kMore);
  EXPECT_EQ(MissedByEvent(), kMore);
  EXPECT_EQ(MissedAnywhere(), 0U);
  EXPECT_EQ(view_.Committed() + view_.Discarded(), 2 * (kKept + kMore));
}

INSTANTIATE_TEST_SUITE_P(Sessions, MissedTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "OfAllTasks" : "OfAScope"; });

}  // namespace
}  // namespace weft::kmod
