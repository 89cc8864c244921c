// SPDX-License-Identifier: GPL-2.0-only
// Probes of user functions: what they record, for which processes, and that they leave nothing in a
// process while they are off or the process is not in the session's scope.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr uint8_t kAddress = 6;
constexpr uint8_t kReturned = 7;
constexpr uint8_t kDuration = 8;

template <typename Function>
const void* AddressOf(Function* function) {
  return reinterpret_cast<const void*>(function);
}

template <typename Function>
Event Uprobe(Function* function) {
  PlaceInFile place = Locate(AddressOf(function));
  return Event::Uprobe(std::move(place.file), place.offset);
}

template <typename Function>
Event Uretprobe(Function* function) {
  PlaceInFile place = Locate(AddressOf(function));
  return Event::Uretprobe(std::move(place.file), place.offset);
}

// USDT's counter. It must be in the file, and therefore not in .bss.
[[gnu::section(".probes")]] volatile uint16_t g_semaphore = 0;

using Fields = std::vector<uint64_t>;

// Reads all records, `count` fields each.
std::vector<Fields> ReadAll(RingView& view, size_t count) {
  std::vector<Fields> records;
  view.DrainAll([&](uint32_t, const SeenRecord& record) {
    Fields& fields = records.emplace_back();
    for (size_t i = 0; i < count; i++) fields.push_back(record.Field(i));
  });
  EXPECT_EQ(view.problem(), "");
  return records;
}

TEST(UprobeTest, ArgumentsAreWhatTheCallerPassed) {
  Event event = Uprobe(WeftSixArguments);
  for (uint8_t i = 0; i < 6; i++) event.Field("arg" + std::to_string(i), i);
  event.Field("ip", kAddress);
  const Recording recording = Record(std::move(event));
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  const char text[] = "text";
  WeftSixArguments(1, 2, 3, text, 5, 6);
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  const uint64_t sum = WeftSixArguments(1ULL << 40, 2, -3, text, 5, 6);
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  WeftSixArguments(1, 2, 3, text, 5, 6);
  EXPECT_EQ(sum, (1ULL << 40) + 10);
  const auto records = ReadAll(view, 7);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0][0], 1ULL << 40);
  EXPECT_EQ(static_cast<uint32_t>(records[0][1]), 2U);
  EXPECT_EQ(records[0][2], ~2ULL);
  EXPECT_EQ(records[0][3], reinterpret_cast<uintptr_t>(text));
  EXPECT_EQ(static_cast<uint8_t>(records[0][4]), 5U);
  EXPECT_EQ(records[0][5], 6U);
  EXPECT_EQ(records[0][6], reinterpret_cast<uintptr_t>(WeftSixArguments));
}

TEST(UprobeTest, ReturnsAreThoseOfTheirCallsHoweverDeep) {
  constexpr uint64_t kDepth = 40;
  Event event = Uretprobe(WeftRecursive);
  event.Field("ret", kReturned).Field("depth", 0).Field("ns", kDuration).Field("ip", kAddress);
  const Recording recording = Record(std::move(event));
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  std::thread other([&] { EXPECT_EQ(WeftRecursive(kDepth), kDepth); });
  EXPECT_EQ(WeftRecursive(kDepth), kDepth);
  other.join();
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  const auto records = ReadAll(view, 4);
  ASSERT_EQ(records.size(), 2 * (kDepth + 1));
  std::array<int, kDepth + 1> seen{};
  for (const Fields& fields : records) {
    EXPECT_EQ(fields[0], fields[1]) << "another call's argument";
    ASSERT_LE(fields[0], kDepth);
    seen[fields[0]]++;
    EXPECT_GT(fields[2], 0U);
    EXPECT_EQ(fields[3], reinterpret_cast<uintptr_t>(WeftRecursive));
  }
  for (const int times : seen) EXPECT_EQ(times, 2);
  weft_kernel_event_status status{};
  status.size = sizeof(status);
  ASSERT_EQ(Control(recording.event.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
  EXPECT_EQ(status.missed, 0U);
}

TEST(UprobeTest, AReturnAloneNeedsNoEntry) {
  Event event = Uretprobe(WeftTarget);
  event.Field("ret", kReturned);
  const Recording recording = Record(std::move(event));
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  for (uint64_t i = 0; i < 100; i++) WeftTarget(i * i);
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  auto records = ReadAll(view, 1);
  ASSERT_EQ(records.size(), 100U);
  std::ranges::sort(records);  // CPU by CPU, and it may have run on several
  for (uint64_t i = 0; i < 100; i++) EXPECT_EQ(records[i][0], i * i);
}

#ifdef __x86_64__
TEST(UprobeTest, RegistersAreThoseOfTheProcess) {
  constexpr uint8_t kCx = 2;
  constexpr uint8_t kDi = 5;
  constexpr uint8_t kSp = 7;
  constexpr uint8_t kIp = 16;
  Event event = Uprobe(WeftSixArguments);
  event.Register("di", kDi).Register("ip", kIp).Register("zero", WEFT_FETCH_REG_ZERO);
  event.LoadUser("caller", kSp, 0).LoadUser("text", kCx, 0);
  const Recording recording = Record(std::move(event));
  ASSERT_TRUE(recording.valid());
  RingView view(recording.ring.get());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  WeftSixArguments(77, 2, 3, "8 bytes", 5, 6);
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  const auto records = ReadAll(view, 5);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0][0], 77U);
  EXPECT_EQ(records[0][1], reinterpret_cast<uintptr_t>(WeftSixArguments));
  EXPECT_EQ(records[0][2], 0U);
  EXPECT_NE(records[0][3], 0U) << "the return address";
  EXPECT_EQ(std::memcmp(&records[0][4], "8 bytes", 8), 0);
}
#endif

TEST(UprobeTest, BreakpointAndSemaphoreAreThereOnlyWhileTheSessionIsOn) {
  Event event = Uprobe(WeftTarget);
  event.Field("value", 0);
  const PlaceInFile semaphore = Locate(const_cast<const uint16_t*>(&g_semaphore));
  ASSERT_TRUE(semaphore.file);
  event.raw().semaphore = semaphore.offset;
  ASSERT_FALSE(HasBreakpoint(AddressOf(WeftTarget)));
  const Recording recording = Record(std::move(event));
  ASSERT_TRUE(recording.valid());
  EXPECT_FALSE(HasBreakpoint(AddressOf(WeftTarget)));
  EXPECT_EQ(g_semaphore, 0);
  for (int i = 0; i < 3; i++) {
    ASSERT_EQ(Switch(recording.session.get(), 1), 0);
    EXPECT_TRUE(HasBreakpoint(AddressOf(WeftTarget)));
    EXPECT_EQ(g_semaphore, 1);
    ASSERT_EQ(Switch(recording.session.get(), 0), 0);
    EXPECT_FALSE(HasBreakpoint(AddressOf(WeftTarget)));
    EXPECT_EQ(g_semaphore, 0);
  }
}

// A child that says, each time it is asked, whether it has the breakpoint, and calls the function.
class Child {
 public:
  Child() {
    EXPECT_EQ(::pipe(ask_.data()), 0);
    EXPECT_EQ(::pipe(answer_.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) Serve();
  }
  ~Child() {
    ::close(ask_[0]);
    ::close(ask_[1]);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::close(answer_[0]);
    ::close(answer_[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool Call(uint8_t value) const {
    char found = 0;
    EXPECT_EQ(::write(ask_[1], &value, 1), 1);
    EXPECT_EQ(::read(answer_[0], &found, 1), 1);
    return found == 1;
  }

 private:
  [[noreturn]] void Serve() const {
    ::close(ask_[1]);
    uint8_t value = 0;
    while (::read(ask_[0], &value, 1) == 1) {
      const char found = HasBreakpoint(AddressOf(WeftTarget)) ? 1 : 0;
      WeftTarget(value);
      if (::write(answer_[1], &found, 1) != 1) break;
    }
    ::_exit(0);
  }

  std::array<int, 2> ask_{}, answer_{};
  pid_t pid_ = -1;
};

TEST(UprobeTest, ProcessesOutsideTheScopeHaveNoBreakpointsAndNoRecords) {
  const Cgroup first("weft-first");
  const Cgroup second("weft-second");
  ASSERT_NE(first.id(), 0U);
  const Child in_first;
  const Child in_second;
  const Child outside;
  ASSERT_TRUE(first.Take(in_first.pid()));
  ASSERT_TRUE(second.Take(in_second.pid()));
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get(), 0);
  const UniqueFd ring = OpenRing(session.get());
  Event event = Uprobe(WeftTarget);
  event.Field("value", 0);
  const UniqueFd made(event.AddTo(ring.get()));
  ASSERT_TRUE(made);
  RingView view(ring.get());
  const auto change = [&session](uint64_t id, uint32_t how) {
    return Scope(session.get(), how, id);
  };
  uint8_t value = 0;
  const auto expect = [&](bool of_first, bool of_second) {
    EXPECT_EQ(in_first.Call(value), of_first);
    EXPECT_EQ(in_second.Call(value), of_second);
    EXPECT_FALSE(outside.Call(value));
    WeftTarget(value);
    EXPECT_FALSE(HasBreakpoint(AddressOf(WeftTarget)));
    const auto records = ReadAll(view, 1);
    EXPECT_EQ(records.size(), size_t{of_first} + size_t{of_second});
    for (const Fields& fields : records) EXPECT_EQ(fields[0], value);
    value++;
  };
  ASSERT_EQ(change(first.id(), WEFT_KERNEL_SCOPE_ADD), 0);
  expect(false, false);
  ASSERT_EQ(Switch(session.get(), 1), 0);
  expect(true, false);
  ASSERT_EQ(change(second.id(), WEFT_KERNEL_SCOPE_ADD), 0);
  expect(true, true);
  ASSERT_EQ(change(first.id(), WEFT_KERNEL_SCOPE_REMOVE), 0);
  expect(false, true);
  ASSERT_EQ(Switch(session.get(), 0), 0);
  expect(false, false);
}

TEST(UprobeTest, AnEventOfASessionThatIsOnBeginsAtOnce) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  const UniqueFd ring = OpenRing(session.get());
  ASSERT_EQ(Switch(session.get(), 1), 0);
  Event event = Uprobe(WeftTarget);
  event.Field("value", 0);
  UniqueFd made(event.AddTo(ring.get()));
  ASSERT_TRUE(made);
  WeftTarget(4711);
  made.reset();
  EXPECT_FALSE(HasBreakpoint(AddressOf(WeftTarget)));
  WeftTarget(4712);
  RingView view(ring.get());
  const auto records = ReadAll(view, 1);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0][0], 4711U);
}

TEST(UprobeTest, AnEventIsThereOnceForEachNumberHoweverItsFileWasFound) {
  const PlaceInFile place = Locate(AddressOf(WeftTarget));
  const Overlays overlays(place.file.get());
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  const UniqueFd ring = OpenRing(session.get());
  const auto add = [&](Event event, uint64_t twin) {
    event.raw().twin = twin;
    event.raw().flags = WEFT_KERNEL_EVENT_STAYS;
    return event.AddTo(ring.get());
  };
  const auto first = [&] { return Event::Uprobe(overlays.OpenInFirst(), place.offset); };
  const auto second = [&] { return Event::Uprobe(overlays.OpenInSecond(), place.offset); };
  EXPECT_EQ(add(first(), 1), 0);
  EXPECT_EQ(add(first(), 1), -EEXIST);
  EXPECT_EQ(add(second(), 1), -EEXIST) << "it is one file below both";
  EXPECT_EQ(add(second(), 2), 0);
  EXPECT_EQ(add(first(), 0), 0);
  EXPECT_EQ(add(second(), 0), 0) << "twins are not asked for";
  EXPECT_EQ(add(Event::Uretprobe(overlays.OpenInSecond(), place.offset), 1), 0);
  EXPECT_EQ(add(Uprobe(WeftTarget), 1), 0) << "another file";
  Event elsewhere = first();
  elsewhere.raw().twin = 1;
  EXPECT_TRUE(UniqueFd(elsewhere.AddTo(OpenRing(session.get()).get()))) << "another ring";
}

TEST(UprobeTest, ProbesComeAndGoWhileTheyAreHit) {
  std::atomic<uint64_t> wrong = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; i++) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; !stop; n++) wrong += WeftRecursive(n % 8) == n % 8 ? 0 : 1;
    });
  }
  for (uint64_t round = 0; round < Scaled(20); round++) {
    Event event = round % 2 == 0 ? Uprobe(WeftRecursive) : Uretprobe(WeftRecursive);
    event.Field("depth", 0);
    const Recording recording = Record(std::move(event));
    ASSERT_TRUE(recording.valid());
    ASSERT_EQ(Switch(recording.session.get(), 1), 0);
    WeftRecursive(3);
    RingView view(recording.ring.get());
    EXPECT_GT(view.Committed() + view.Discarded(), 0U);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(UnloadModule(), 0);
  EXPECT_EQ(LoadModule(), 0);
}

class UprobeInputTest : public testing::Test {
 protected:
  int Add(const std::function<void(weft_kernel_event&)>& change, bool at_return = false) const {
    Event event = at_return ? Uretprobe(WeftTarget) : Uprobe(WeftTarget);
    event.Field("value", 0);
    change(event.Finish());
    const UniqueFd made(Control(ring_.get(), WEFT_IOCTL_EVENT, &event.raw()));
    return made.valid() ? 0 : -errno;
  }

  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get());
  UniqueFd ring_ = OpenRing(session_.get());
};

TEST_F(UprobeInputTest, RefusesInvalidInput) {
  using Change = weft_kernel_event&;
  EXPECT_EQ(Add([](Change) {}), 0);
  EXPECT_EQ(Add([](Change) {}, true), 0);
  EXPECT_EQ(Add([](Change e) { e.file = -1; }), -EBADF);
  EXPECT_EQ(Add([](Change e) { e.file = 4000; }), -EBADF);
  EXPECT_EQ(Add([this](Change e) { e.file = ring_.get(); }), -EINVAL) << "no regular file";
  const UniqueFd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(Add([&](Change e) { e.file = folder.get(); }), -EINVAL);
  const UniqueFd unread(::open("/proc/self/exe", O_PATH | O_CLOEXEC));
  EXPECT_EQ(Add([&](Change e) { e.file = unread.get(); }), -EBADF);
  EXPECT_EQ(Add([](Change e) { e.offset = 1ULL << 40; }), -EINVAL) << "behind the file's end";
  EXPECT_EQ(Add([](Change e) { e.offset = ~0ULL; }), -EINVAL);
  EXPECT_EQ(Add([](Change e) { e.semaphore = 1ULL << 40; }), -EINVAL);
  EXPECT_EQ(Add([](Change e) { e.semaphore = 3; }), -EINVAL) << "an odd place";
  EXPECT_EQ(Add([](Change e) { e.semaphore = 2; }, true), -EINVAL) << "of a return";
  EXPECT_EQ(Add([](Change e) { e.number = 1; }), -EINVAL);
  EXPECT_EQ(Add([](Change e) { e.table = 1; }), -EINVAL);
  EXPECT_EQ(Add([](Change e) { e.subjects |= 1; }), 0) << "in a session without a scope";
  const char name[] = "x";
  EXPECT_EQ(Add([&](Change e) {
              e.name = reinterpret_cast<uintptr_t>(name);
              e.name_size = sizeof(name);
            }),
            -EINVAL);
}

TEST_F(UprobeInputTest, OthersHaveNoFileAndNoRegisters) {
  Event kprobe = Event::Kprobe("do_nanosleep");
  kprobe.Field("a", 0);
  kprobe.raw().file = 1;
  EXPECT_EQ(kprobe.AddTo(ring_.get()), -EINVAL);
  kprobe.raw().file = 0;
  kprobe.raw().semaphore = 2;
  EXPECT_EQ(kprobe.AddTo(ring_.get()), -EINVAL);
  kprobe.raw().semaphore = 0;
  kprobe.Register("r", 0);
  EXPECT_EQ(kprobe.AddTo(ring_.get()), -EINVAL);
}

}  // namespace
}  // namespace weft::kmod
