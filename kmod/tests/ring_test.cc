// SPDX-License-Identifier: GPL-2.0-only
// A ring's descriptor: the bytes of its header, pread, splice, mmap, poll, and what a hostile or
// dead reader can do to it, which is to spoil its own reading.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

const Source& Any() { return Sources()[0]; }

class RingTest : public testing::Test {
 protected:
  Recording made_ = Record(Any().event());

  void SetUp() override { ASSERT_TRUE(made_.valid()); }
  [[nodiscard]] int ring() const { return made_.ring.get(); }
  [[nodiscard]] int session() const { return made_.session.get(); }
};

// A thread that sleeps in poll on a ring, without a time-out: poll looks again at its end, and
// would find data that it was not woken for.
class Sleeper {
 public:
  // Returns when it sleeps.
  explicit Sleeper(int ring) : thread_([this, ring] { Sleep(ring); }) {
    while (!Sleeps() && !woken_) ::usleep(1000);
  }
  ~Sleeper() {
    ::eventfd_write(end_.get(), 1);
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Each wait of the reader takes two switches of the CPU to another task.
  // Counts turns, since a guest's clock leaps.
  [[nodiscard]] bool IsWokenSoon() const {
    for (int turns = 0; !woken_ && turns < 100'000; turns++) ::usleep(100);
    return woken_;
  }
  [[nodiscard]] bool woken() const { return woken_; }

 private:
  void Sleep(int ring) {
    std::array<pollfd, 2> wanted = {{{ring, POLLIN, 0}, {end_.get(), POLLIN, 0}}};
    thread_id_ = ::gettid();
    ::poll(wanted.data(), wanted.size(), -1);
    woken_ = (wanted[0].revents & POLLIN) != 0;
  }
  [[nodiscard]] bool Sleeps() const {
    std::ifstream file("/proc/self/task/" + std::to_string(thread_id_) + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
  }

  UniqueFd end_{::eventfd(0, EFD_CLOEXEC)};
  std::atomic<pid_t> thread_id_{0};
  std::atomic<bool> woken_{false};
  std::thread thread_;
};

template <typename T>
T ReadAt(int fd, uint64_t offset) {
  T value{};
  EXPECT_EQ(::pread(fd, &value, sizeof(value), static_cast<off_t>(offset)),
            static_cast<ssize_t>(sizeof(value)));
  return value;
}

// The header as bytes, from the text of lib/abi/ring.h: what is the machine's or random is zeroed.
TEST_F(RingTest, TheHeaderHasItsBytes) {
  std::vector<uint8_t> bytes(sizeof(weft_ring_header));
  ASSERT_EQ(::pread(ring(), bytes.data(), bytes.size(), 0), 152);
  const auto header = ReadAt<weft_ring_header>(ring(), 0);
  const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
  EXPECT_GE(header.slot_count, cpus + 1);
  EXPECT_LE(header.slot_count, WEFT_RING_MAX_SLOTS);
  EXPECT_EQ(header.data_offset % 4096, 0U);
  EXPECT_GE(header.slots_offset, sizeof(weft_ring_header));
  EXPECT_EQ(header.slots_offset % 64, 0U);
  EXPECT_GE(header.descriptions_offset, header.slots_offset + header.slot_count * 128ULL);
  EXPECT_GE(header.data_offset, header.descriptions_offset + header.descriptions_size);
  EXPECT_EQ(header.total_size, header.data_offset + (uint64_t{header.slot_count} << 18));
  EXPECT_NE(header.instance, 0U);
  EXPECT_NE(header.created, 0U);
  EXPECT_GT(header.descriptions_used, 0U);

  const auto zero = [&bytes](size_t from, size_t to) {
    std::fill(bytes.begin() + static_cast<long>(from), bytes.begin() + static_cast<long>(to), 0);
  };
  zero(16, 60);    // sizes and offsets, slot_count: above
  zero(88, 100);   // instance, pid
  zero(104, 120);  // created, descriptions_used
  std::vector<uint8_t> golden(152);
  const auto put = [&golden](size_t at, std::initializer_list<uint8_t> what) {
    std::copy(what.begin(), what.end(), golden.begin() + static_cast<long>(at));
  };
  put(0, {'W', 'R', 'N', 'G', 1, 0, 1, 0, 152, 0, 0, 0});
  put(60, {128, 0, 0, 0, 18, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7});
  EXPECT_EQ(bytes, golden);
}

TEST_F(RingTest, TwoRingsAreTwoInstances) {
  const Recording other = Record(Any().event());
  EXPECT_NE(ReadAt<weft_ring_header>(ring(), 0).instance,
            ReadAt<weft_ring_header>(other.ring.get(), 0).instance);
}

TEST_F(RingTest, TheDescriptionIsTheOneThatWasGiven) {
  Event event = Any().event();
  event.Finish();
  const auto header = ReadAt<weft_ring_header>(ring(), 0);
  const auto entry = ReadAt<weft_description_entry>(ring(), header.descriptions_offset);
  EXPECT_EQ(entry.event, made_.event_id);
  EXPECT_EQ(entry.reserved, 0);
  ASSERT_EQ(entry.size, sizeof(entry) + event.description().size());
  EXPECT_EQ(header.descriptions_used, (entry.size + 7U) & ~7U);
  std::vector<uint8_t> found(event.description().size());
  ASSERT_EQ(::pread(ring(), found.data(), found.size(),
                    static_cast<off_t>(header.descriptions_offset + sizeof(entry))),
            static_cast<ssize_t>(found.size()));
  EXPECT_EQ(found, event.description());
}

TEST_F(RingTest, ReadsAnyRangeUpToTheTotalSize) {
  const auto header = ReadAt<weft_ring_header>(ring(), 0);
  std::vector<uint8_t> bytes(size_t{1} << 20);
  uint64_t at = 0;
  while (at < header.total_size) {
    const ssize_t got = ::pread(ring(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    ASSERT_GT(got, 0) << at;
    at += static_cast<uint64_t>(got);
  }
  EXPECT_EQ(at, header.total_size);
  const auto end = static_cast<off_t>(header.total_size);
  EXPECT_EQ(::pread(ring(), bytes.data(), 16, end), 0);
  EXPECT_EQ(::pread(ring(), bytes.data(), 16, end - 5), 5);
  EXPECT_EQ(::pread(ring(), bytes.data(), 16, INT64_MAX - 16), 0);
  EXPECT_EQ(::pread(ring(), bytes.data(), 16, -1), -1);
  void* nowhere = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(::pread(ring(), nowhere, 16, 0), -1);
  ::munmap(nowhere, 4096);
  // The atomic slot has no writer here.
  const off_t atomic = end - (off_t{1} << header.slot_shift);
  ASSERT_EQ(::pread(ring(), bytes.data(), 4096, atomic), 4096);
  EXPECT_EQ(std::count(bytes.begin(), bytes.begin() + 4096, 0), 4096);
  EXPECT_EQ(::pwrite(ring(), bytes.data(), 16, 0), -1);
}

// Returns at most `bytes` of a file from `offset` on, read through a pipe.
std::vector<uint8_t> SpliceAt(int fd, uint64_t offset, size_t bytes) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  auto at = static_cast<loff_t>(offset);
  std::vector<uint8_t> found(bytes);
  size_t done = 0;
  ssize_t moved = 0;
  while ((moved = ::splice(fd, &at, in.get(), nullptr, bytes - done, 0)) > 0) {
    const size_t end = done + static_cast<size_t>(moved);
    while (done < end) {
      const ssize_t got = ::read(out.get(), &found[done], end - done);
      if (got <= 0) return {};
      done += static_cast<size_t>(got);
    }
  }
  EXPECT_EQ(moved, 0) << errno;
  EXPECT_EQ(at, static_cast<loff_t>(offset + done));
  found.resize(done);
  return found;
}

TEST_F(RingTest, SpliceTakesWhatPreadReads) {
  constexpr size_t kBefore = 5'000;
  ASSERT_EQ(Switch(session(), 1), 0);
  for (uint64_t i = 0; i < 1'000; i++) Any().emit(i);
  ASSERT_EQ(Switch(session(), 0), 0);
  const auto header = ReadAt<weft_ring_header>(ring(), 0);
  // Reads shared pages, all slots, and behind the end, from an offset inside a page.
  const uint64_t offset = header.data_offset - kBefore;
  std::vector<uint8_t> expected(header.total_size - offset);
  ASSERT_EQ(::pread(ring(), expected.data(), expected.size(), static_cast<off_t>(offset)),
            static_cast<ssize_t>(expected.size()));
  EXPECT_TRUE(std::any_of(expected.begin() + kBefore, expected.end(),
                          [](uint8_t byte) { return byte != 0; }));
  EXPECT_TRUE(SpliceAt(ring(), offset, expected.size() + 10'000) == expected);
  EXPECT_TRUE(SpliceAt(ring(), header.total_size, 4096).empty());
}

TEST_F(RingTest, OnlyTheSharedPartMayBeMappedForWriting) {
  const auto header = ReadAt<weft_ring_header>(ring(), 0);
  const auto map = [this](size_t bytes, int protection, int flags, uint64_t offset) {
    void* at = ::mmap(nullptr, bytes, protection, flags, ring(), static_cast<off_t>(offset));
    if (at == MAP_FAILED) return false;
    ::munmap(at, bytes);
    return true;
  };
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  EXPECT_TRUE(map(header.data_offset, kBoth, MAP_SHARED, 0));
  EXPECT_TRUE(map(header.data_offset, PROT_READ, MAP_SHARED, 0));
  EXPECT_FALSE(map(header.data_offset + 4096, kBoth, MAP_SHARED, 0));
  EXPECT_FALSE(map(4096, kBoth, MAP_SHARED, header.data_offset));
  EXPECT_FALSE(map(4096, PROT_READ | PROT_EXEC, MAP_SHARED, header.data_offset));
  EXPECT_FALSE(map(4096, PROT_READ, MAP_SHARED, header.total_size));
  EXPECT_FALSE(map(size_t{1} << 40, PROT_READ, MAP_SHARED, 0));
  void* data =
      ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, ring(), static_cast<off_t>(header.data_offset));
  if (data == MAP_FAILED) return;  // a module need not map data at all
  EXPECT_EQ(::mprotect(data, 4096, kBoth), -1) << "data became writable";
  EXPECT_EQ(std::memcmp(data, std::vector<uint8_t>(4096).data(), 32), 0);
  ::munmap(data, 4096);
}

TEST_F(RingTest, IsReadableForPollWhenASubbufferWasFilled) {
  RingView view(ring());
  const auto ready = [this](int timeout) {
    pollfd wanted{ring(), POLLIN, 0};
    return ::poll(&wanted, 1, timeout) == 1 && (wanted.revents & POLLIN) != 0;
  };
  ASSERT_EQ(Switch(session(), 1), 0);
  EXPECT_FALSE(ready(0));
  Any().emit(1);
  EXPECT_FALSE(ready(0)) << "one record fills nothing";
  // Fills a sub-buffer of 64 KiB on each CPU that this thread may run on.
  for (uint64_t i = 0; i < 2 * 65536 / 24; i++) Any().emit(i);
  EXPECT_TRUE(ready(10'000));
  view.DrainAll([](uint32_t, const SeenRecord&) {});
  EXPECT_FALSE(ready(0)) << "nothing was filled since the last poll";
}

TEST_F(RingTest, WakesPollWhenASubbufferWasFilled) {
  const Sleeper sleeper(ring());
  ASSERT_EQ(Switch(session(), 1), 0);
  Any().emit(1);
  ::usleep(100'000);
  EXPECT_FALSE(sleeper.woken()) << "one record fills nothing";
  for (uint64_t i = 0; i < 2 * 65536 / 24; i++) Any().emit(i);
  EXPECT_TRUE(sleeper.IsWokenSoon());
}

// While the scheduler holds its locks, a probe cannot wake a task at once.
TEST_F(RingTest, WakesPollAfterARecordOfTheScheduler) {
  weft_kernel_channel channel = RightChannel();
  channel.slot_shift = 14;
  channel.subbuf_shift = 12;
  Event event = Event::Tracepoint("sched_switch");
  event.raw().subjects = 0;  // of all tasks that come and go
  event.Field("preempt", 0);
  const Recording made = Record(std::move(event), channel);
  ASSERT_TRUE(made.valid());
  const Sleeper sleeper(made.ring.get());
  ASSERT_EQ(Switch(made.session.get(), 1), 0);
  EXPECT_TRUE(sleeper.IsWokenSoon());
}

TEST_F(RingTest, ClosedEndsRecordingInThatSlotAndCountsNothing) {
  RingView view(ring());
  ASSERT_EQ(Switch(session(), 1), 0);
  for (uint32_t i = 0; i < view.rings(); i++) view.slot(i)->closed = 1;
  for (uint64_t i = 0; i < 1000; i++) Any().emit(i);
  EXPECT_EQ(view.Committed() + view.Discarded(), 0U);
}

TEST_F(RingTest, AReaderThatSpoilsTheSharedPagesSpoilsNothingElse) {
  RingView view(ring());
  ASSERT_EQ(view.problem(), "");
  const Recording other = Record(Any().event());
  RingView good(other.ring.get());
  ASSERT_EQ(Switch(session(), 1), 0);
  ASSERT_EQ(Switch(other.session.get(), 1), 0);
  std::mt19937_64 random(1);
  {
    Storm storm(Any(), 4, Scaled(5'000));
    auto* words = reinterpret_cast<uint64_t*>(view.map());
    while (!storm.over()) {
      for (int i = 0; i < 1000; i++)
        words[random() % (view.header().data_offset / 8)] = i % 4 == 0 ? ~0ULL : random();
      good.DrainAll([](uint32_t, const SeenRecord&) {});
    }
  }
  ASSERT_EQ(Switch(session(), 0), 0);
  ASSERT_EQ(Switch(other.session.get(), 0), 0);
  good.DrainAll([](uint32_t, const SeenRecord&) {});
  EXPECT_EQ(good.problem(), "");
  EXPECT_EQ(good.Committed() + good.Discarded(), 4 * Scaled(5'000));
  // pread shows the same pages: it must only not fail.
  std::vector<uint8_t> bytes(size_t{1} << 20);
  EXPECT_GT(::pread(ring(), bytes.data(), bytes.size(), 0), 0);
  Event again = Any().event();
  const UniqueFd event(again.AddTo(ring()));
}

// Tries tails that promise too much, too little, and nonsense, each with a fresh ring.
TEST(TailTest, NoTailMakesTheModuleWriteOverWhatWasNotRead) {
  for (const uint64_t tail : {~0ULL, 1ULL << 63, 1ULL << 36, 1ULL << 32, 40ULL, 0ULL}) {
    const Recording made = Record(Any().event());
    ASSERT_TRUE(made.valid());
    RingView view(made.ring.get());
    ASSERT_EQ(Switch(made.session.get(), 1), 0);
    for (uint32_t i = 0; i < view.rings(); i++) view.slot(i)->tail = tail;
    for (uint64_t i = 0; i < 30'000; i++) Any().emit(i);
    ASSERT_EQ(Switch(made.session.get(), 0), 0);
    EXPECT_LE(view.Committed(), 30'000U) << tail;
    EXPECT_EQ(view.Committed() + view.Discarded(), 30'000U) << tail;
  }
}

}  // namespace
}  // namespace weft::kmod
