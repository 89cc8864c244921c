// SPDX-License-Identifier: GPL-2.0-only
// Processes make events on all CPUs while the test moves them between cgroups that are made, taken
// into the session's scope and out of it, and deleted. Each call notes the time before and after
// it, and so does each change. For most calls it is therefore known whether they were in scope, and
// for the others that they may have been.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr size_t kWorkers = 4;  // more than the guest has CPUs
constexpr size_t kGroups = 4;   // that are there at a time
constexpr uint64_t kChanges = 2'000;
constexpr uint64_t kCallsPerChange = 250;  // at most, of a worker
constexpr useconds_t kPause = 2'000;       // between two changes, at most

uint64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A time in which a worker was in scope. Each end lies between two known times; the exact moment is
// not known.
struct Interval {
  uint64_t begin_earliest = 0, begin_latest = 0;
  uint64_t end_earliest = UINT64_MAX, end_latest = UINT64_MAX;
};

struct Call {
  uint64_t before = 0, after = 0;
};

// A process that makes numbered events until it is told to stop. Its calls are in memory that it
// shares.
class Worker {
 public:
  Worker(uint64_t index, uint64_t most) : most_(most) {
    void* map = ::mmap(nullptr, sizeof(Shared) + most * sizeof(Call), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(map, MAP_FAILED);
    shared_ = new (map) Shared;
    pid_ = ::fork();
    if (pid_ == 0) {
      Run(index);
      ::_exit(0);
    }
  }
  ~Worker() {
    Stop();
    ::munmap(shared_, sizeof(Shared) + most_ * sizeof(Call));
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Start() { shared_->start = true; }
  void Stop() {
    shared_->stop = true;
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // When it stopped.
  [[nodiscard]] std::span<const Call> calls() const { return {call(0), shared_->made}; }

 private:
  struct Shared {
    std::atomic<bool> start = false, stop = false;
    std::atomic<uint64_t> made = 0;
  };

  [[nodiscard]] Call* call(uint64_t n) const { return reinterpret_cast<Call*>(shared_ + 1) + n; }

  void Run(uint64_t index) {
    uint64_t n = 0;
    while (!shared_->stop) {
      if (!shared_->start || n >= most_) {
        ::usleep(1000);
        continue;
      }
      call(n)->before = Now();
      ::syscall(SYS_sched_get_priority_max, 1, index << 32 | n);
      call(n)->after = Now();
      shared_->made = ++n;
    }
  }

  uint64_t most_;
  Shared* shared_ = nullptr;
  pid_t pid_ = -1;
};

// A cgroup, perhaps with another one in it, where processes are then; and when it was in scope.
struct Group {
  std::unique_ptr<Cgroup> outer, inner;
  uint64_t id = 0;
  std::vector<Interval> in_scope;
  bool is_in_scope = false;

  [[nodiscard]] const Cgroup& place() const { return inner ? *inner : *outer; }
};

struct Stay {
  std::shared_ptr<Group> group;  // none: the first of all, which is never in scope
  Interval when;
};

class ScopeStormTest : public testing::Test {
 protected:
  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get(), 0);
  UniqueFd ring_ = OpenRing(session_.get());
  const Cgroup first_of_all_{""};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::array<std::vector<Stay>, kWorkers> stays_;
  std::array<std::shared_ptr<Group>, kGroups> groups_;
  std::mt19937_64 random_;
  uint64_t made_ = 0;

  void Make(size_t place) {
    auto group = std::make_shared<Group>();
    const std::string name = "weft-storm-" + std::to_string(made_++);
    group->outer = std::make_unique<Cgroup>(name);
    if (random_() % 2 == 0) group->inner = std::make_unique<Cgroup>(name + "/inner");
    group->id = group->outer->id();
    ASSERT_NE(group->id, 0U);
    groups_.at(place) = std::move(group);
  }

  void SetScope(Group& group, bool add) {
    const uint32_t change = add ? WEFT_KERNEL_SCOPE_ADD : WEFT_KERNEL_SCOPE_REMOVE;
    const uint64_t begin = Now();
    ASSERT_EQ(Scope(session_.get(), change, group.id), 0);
    const uint64_t end = Now();
    group.is_in_scope = add;
    if (add) {
      group.in_scope.push_back({.begin_earliest = begin, .begin_latest = end});
    } else {
      group.in_scope.back().end_earliest = begin;
      group.in_scope.back().end_latest = end;
    }
  }

  void Move(size_t worker, std::shared_ptr<Group> group) {
    const Cgroup& place = group ? group->place() : first_of_all_;
    const uint64_t begin = Now();
    ASSERT_TRUE(place.Take(workers_[worker]->pid()));
    const uint64_t end = Now();
    auto& stays = stays_.at(worker);
    if (!stays.empty()) {
      stays.back().when.end_earliest = begin;
      stays.back().when.end_latest = end;
    }
    stays.push_back({std::move(group), {.begin_earliest = begin, .begin_latest = end}});
  }

  void Delete(size_t place) {
    const std::shared_ptr<Group> group = std::move(groups_.at(place));
    for (size_t worker = 0; worker < kWorkers; worker++)
      if (stays_.at(worker).back().group == group) Move(worker, nullptr);
    const bool before = random_() % 2 == 0;
    if (group->is_in_scope && before) SetScope(*group, false);
    group->inner.reset();
    group->outer.reset();
    if (group->is_in_scope) SetScope(*group, false);
  }

  void Change() {
    const size_t place = random_() % kGroups;
    const std::shared_ptr<Group>& group = groups_.at(place);
    if (!group) return Make(place);
    switch (random_() % 8) {
      case 0:
        return Delete(place);
      case 1:
      case 2:
      case 3:
        return SetScope(*group, !group->is_in_scope);
      default:
        return Move(random_() % kWorkers, random_() % 5 == 0 ? nullptr : group);
    }
  }

  // Returns when a worker was in a cgroup that was in scope, in order of time.
  [[nodiscard]] std::vector<Interval> InScope(size_t worker) const {
    std::vector<Interval> all;
    for (const Stay& stay : stays_.at(worker)) {
      if (!stay.group) continue;
      for (const Interval& scope : stay.group->in_scope) {
        const Interval& when = stay.when;
        const Interval both{std::max(when.begin_earliest, scope.begin_earliest),
                            std::max(when.begin_latest, scope.begin_latest),
                            std::min(when.end_earliest, scope.end_earliest),
                            std::min(when.end_latest, scope.end_latest)};
        if (both.begin_earliest <= both.end_latest) all.push_back(both);
      }
    }
    return all;
  }
};

struct Verdict {
  uint64_t recorded = 0, may = 0, must = 0, must_not = 0;
  uint64_t strangers = 0, missing = 0;
};

// Compares the records of a worker's calls with what is known of the calls. Both lists are in order
// of time.
void Judge(std::span<const Call> calls, const std::vector<uint8_t>& times,
           std::span<const Interval> in_scope, Verdict& verdict) {
  for (size_t n = 0; n < calls.size(); n++) {
    const Call& call = calls[n];
    while (!in_scope.empty() && in_scope.front().end_latest < call.before)
      in_scope = in_scope.subspan(1);
    bool may = false, must = false;
    for (const Interval& i : in_scope) {
      if (i.begin_earliest > call.after) break;
      may |= i.end_latest >= call.before;
      must |= i.begin_latest <= call.before && call.after <= i.end_earliest;
    }
    EXPECT_LE(times[n], 1);
    verdict.recorded += times[n];
    verdict.may += may && !must ? 1 : 0;
    verdict.must += must ? 1 : 0;
    verdict.must_not += may ? 0 : 1;
    verdict.strangers += times[n] != 0 && !may ? 1 : 0;
    verdict.missing += times[n] == 0 && must ? 1 : 0;
  }
}

TEST_F(ScopeStormTest, RecordsOrCountsExactlyTheEventsInScope) {
  ASSERT_NE(Features() & WEFT_KERNEL_SCOPES, 0U);
  const char* text = std::getenv("WEFT_FUZZ_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
  std::cout << "WEFT_FUZZ_SEED=" << seed << std::endl;
  random_.seed(seed);
  const uint64_t most = Scaled(kChanges) * kCallsPerChange;
  for (size_t i = 0; i < kWorkers; i++) workers_.push_back(std::make_unique<Worker>(i, most));
  for (size_t i = 0; i < kWorkers; i++) Move(i, nullptr);
  Event event = Event::SyscallEntry(SYS_sched_get_priority_max);
  event.Field("second", 1);
  const UniqueFd attached(event.AddTo(ring_.get()));
  ASSERT_TRUE(attached);
  RingView view(ring_.get());
  ASSERT_EQ(Switch(session_.get(), 1), 0);

  std::array<std::vector<uint8_t>, kWorkers> times;
  times.fill(std::vector<uint8_t>(most));
  uint64_t read = 0, strange = 0;
  const auto use = [&](uint32_t, const SeenRecord& record) {
    const uint64_t worker = record.Field(0) >> 32;
    const uint64_t n = record.Field(0) & 0xffffffff;
    if (worker < kWorkers && n < most)
      times[worker][n]++;
    else
      strange++;
  };
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) read += view.DrainAll(use);
  });
  for (const auto& worker : workers_) worker->Start();
  for (uint64_t i = 0; i < Scaled(kChanges) && !HasFatalFailure(); i++) {
    Change();
    ::usleep(random_() % kPause);
  }
  for (size_t place = 0; place < kGroups; place++)
    if (groups_.at(place)) Delete(place);
  for (const auto& worker : workers_) worker->Stop();
  over = true;
  reader.join();
  ASSERT_EQ(Switch(session_.get(), 0), 0);
  read += view.DrainAll(use);

  Verdict verdict;
  for (size_t i = 0; i < kWorkers; i++) Judge(workers_[i]->calls(), times[i], InScope(i), verdict);
  std::cout << "in scope " << verdict.must << ", perhaps " << verdict.may << ", not "
            << verdict.must_not << "; recorded " << verdict.recorded << ", discarded "
            << view.Discarded() << std::endl;
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(strange, 0U) << "values that no worker made";
  EXPECT_EQ(read, view.Committed());
  EXPECT_EQ(verdict.recorded, read);
  EXPECT_EQ(verdict.strangers, 0U) << "recorded while they were not in scope";
  EXPECT_LE(verdict.missing, view.Discarded());
  EXPECT_GE(verdict.must + verdict.may, read + view.Discarded());
  EXPECT_GT(verdict.must, 1000U);
  EXPECT_GT(verdict.must_not, 1000U);
}

}  // namespace
}  // namespace weft::kmod
