// SPDX-License-Identifier: GPL-2.0-only
// What a session whose scope is a cgroup is not shown: what interrupts do while one of its tasks
// runs, and whom its own task's event met.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

using std::chrono::milliseconds;

// A cgroup with this process in it.
class OwnCgroup {
 public:
  OwnCgroup() { EXPECT_TRUE(cgroup_.Take(::getpid())); }
  ~OwnCgroup() { std::ofstream("/sys/fs/cgroup/cgroup.procs") << ::getpid() << std::flush; }
  OwnCgroup(const OwnCgroup&) = delete;
  OwnCgroup& operator=(const OwnCgroup&) = delete;

  [[nodiscard]] int AddTo(int session) const {
    return Scope(session, WEFT_KERNEL_SCOPE_ADD, cgroup_.id());
  }

 private:
  Cgroup cgroup_{"hidden"};
};

// One event of this process's cgroup, or of all, with contexts.
struct Session {
  UniqueFd device = OpenDevice();
  UniqueFd session;
  UniqueFd ring;
  UniqueFd event;

  // own NULL: of all.
  Session(const OwnCgroup* own, Event wanted, const std::vector<uint16_t>& contexts = {})
      : session(OpenSession(device.get(), own != nullptr ? 0 : WEFT_KERNEL_SESSION_ALL)) {
    ring = OpenRing(session.get(), Specs(contexts));
    EXPECT_TRUE(ring);
    if (own != nullptr) {
      EXPECT_EQ(own->AddTo(session.get()), 0);
    }
    event = UniqueFd(wanted.AddTo(ring.get()));
    EXPECT_TRUE(event);
    EXPECT_EQ(Switch(session.get(), 1), 0);
  }
  [[nodiscard]] uint64_t Records() const { return RingView(ring.get()).Committed(); }
};

// A thread of this process that computes, so that interrupts come upon it.
class Busy {
 public:
  Busy()
      : thread_([this] {
          while (!stop_) {
          }
        }) {}
  ~Busy() {
    stop_ = true;
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

Event OfCurrent(Event event) {
  event.raw().subjects = WEFT_KERNEL_SUBJECT_CURRENT;
  return event;
}

TEST(HiddenTest, HidesEventsOfAnInterruptOnATaskOfTheSession) {
  const OwnCgroup own;
  const auto of_timers = [](int kind) {
    if (kind == 0) return OfCurrent(Event::Tracepoint("hrtimer_expire_entry"));
    return OfCurrent(kind == 1 ? Event::Kprobe("hrtimer_interrupt")
                               : Event::Kretprobe("hrtimer_interrupt"));
  };
  for (int kind = 0; kind < 3; kind++) {
    SCOPED_TRACE(kind);
    const Session scoped(&own, of_timers(kind));
    const Session all(nullptr, of_timers(kind));
    const Busy busy;
    while (all.Records() < 100) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(scoped.Records(), 0U);
  }
}

// The function runs in task context here. A breakpoint, which is an exception of its own, reaches
// it.
TEST(HiddenTest, ShowsFunctionsThatATaskOfTheSessionCalls) {
  const OwnCgroup own;
  for (const bool is_return : {false, true}) {
    const std::string function = "__x64_sys_getppid";
    const Session scoped(
        &own, OfCurrent(is_return ? Event::Kretprobe(function) : Event::Kprobe(function)));
    for (int i = 0; i < 100; i++) ::getppid();
    EXPECT_EQ(scoped.Records(), 100U);
  }
}

// A task that ends is switched away from when it has no namespaces any more, and no parent that
// waits.
TEST(HiddenTest, NamesOfTasksThatEnd) {
  Event switched = Event::Tracepoint("sched_switch");
  const Session all(nullptr, OfCurrent(std::move(switched)),
                    {WEFT_CONTEXT_HOSTNAME, WEFT_CONTEXT_VPPID, WEFT_CONTEXT_VPID,
                     WEFT_CONTEXT_PROCNAME, WEFT_CONTEXT_NET_NS, WEFT_CONTEXT_VUID});
  for (int i = 0; i < 200; i++) std::thread([] {}).join();
  RingView view(all.ring.get());
  uint64_t nameless = 0;
  char host[64] = {};
  ASSERT_EQ(::gethostname(host, sizeof(host)), 0);
  EXPECT_EQ(Switch(all.session.get(), 0), 0);
  view.DrainAll([&](uint32_t, const SeenRecord& record) {
    const std::string name(reinterpret_cast<const char*>(record.payload.data()));
    EXPECT_TRUE(name.empty() || name == host) << name;
    nameless += name.empty() ? 1 : 0;
  });
  EXPECT_EQ(view.problem(), "");
  EXPECT_GE(nameless, 1U) << "no task was met at its end";
}

// This process's thread is woken by, and switched to from, tasks that are not the session's.
TEST(HiddenTest, HidesTheRunningTaskIfAnotherOneIsTheSubject) {
  const OwnCgroup own;
  Event waking = Event::Tracepoint("sched_waking");
  waking.raw().subjects = 1;  // who is woken
  const Session scoped(&own, std::move(waking),
                       {WEFT_CONTEXT_HOSTNAME, WEFT_CONTEXT_PROCNAME, WEFT_CONTEXT_TID,
                        WEFT_CONTEXT_NEED_RESCHEDULE, WEFT_CONTEXT_MIGRATABLE});
  for (int i = 0; i < 50; i++) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(Switch(scoped.session.get(), 0), 0);
  RingView view(scoped.ring.get());
  uint64_t others = 0;
  const uint32_t host_size = weft_context_by_id(WEFT_CONTEXT_HOSTNAME)->size;
  const uint32_t name_size = weft_context_by_id(WEFT_CONTEXT_PROCNAME)->size;
  view.DrainAll([&](uint32_t, const SeenRecord& record) {
    const auto* bytes = reinterpret_cast<const char*>(record.payload.data());
    if (std::string(bytes + host_size) != "other") return;
    others++;
    EXPECT_EQ(std::string(bytes), "other");
    for (size_t i = host_size + name_size; i < record.payload.size(); i++)
      EXPECT_EQ(record.payload[i], 0) << i;
  });
  EXPECT_EQ(view.problem(), "");
  EXPECT_GE(others, 1U) << "always woken by a task of its own";
}

}  // namespace
}  // namespace weft::kmod
