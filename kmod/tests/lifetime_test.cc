// SPDX-License-Identifier: GPL-2.0-only
// Descriptors may be closed in any order, at any time, by the death of any process: what
// lib/abi/kernel.h says under "Lifetime".
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <utility>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

const Source& Any() { return Sources()[0]; }

TEST(LifetimeTest, TheModuleStaysWhileAnyDescriptorIsOpen) {
  for (size_t kept = 0; kept < 4; kept++) {
    Recording one = Record(Any().event());
    std::array<UniqueFd*, 4> each = {&one.device, &one.session, &one.ring, &one.event};
    for (size_t i = 0; i < each.size(); i++)
      if (i != kept) each[i]->reset();
    EXPECT_EQ(UnloadModule(), -EWOULDBLOCK) << "kept: " << kept;
    ASSERT_TRUE(ModuleIsLoaded());
    each[kept]->reset();
    ASSERT_EQ(UnloadModule(), 0) << "kept before: " << kept;
    ASSERT_EQ(LoadModule(), 0);
  }
}

TEST(LifetimeTest, AnyOrderOfClosingWhileEventsCome) {
  const Noise noise(Any().emit);
  std::array<int, 4> order = {0, 1, 2, 3};
  do {
    Recording made = Record(Any().event());
    ASSERT_TRUE(made.valid());
    ASSERT_EQ(Switch(made.session.get(), 1), 0);
    std::array<UniqueFd*, 4> each = {&made.device, &made.session, &made.ring, &made.event};
    for (const int i : order) each[i]->reset();
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(UnloadModule(), 0);
  EXPECT_EQ(LoadModule(), 0);
}

TEST(LifetimeTest, ARingIsReadableAfterItsSessionAndItsEventsEnded) {
  Recording made = Record(Any().event());
  ASSERT_TRUE(made.valid());
  ASSERT_EQ(Switch(made.session.get(), 1), 0);
  for (uint64_t i = 1; i <= 100; i++) Any().emit(i);
  made.event.reset();
  made.session.reset();
  made.device.reset();
  for (uint64_t i = 1; i <= 100; i++) Any().emit(i);
  RingView view(made.ring.get());
  uint64_t next = 0;
  view.DrainAll([&next](uint32_t, const SeenRecord& record) { next += record.Field(0); });
  EXPECT_EQ(view.problem(), "");
  EXPECT_EQ(next, 5050U);
}

TEST(LifetimeTest, TheSessionsEndDetachesWhileItsEventsDescriptorIsOpen) {
  Recording made = Record(Any().event());
  ASSERT_TRUE(made.valid());
  ASSERT_EQ(Switch(made.session.get(), 1), 0);
  Any().emit(1);
  made.session.reset();
  for (uint64_t i = 1; i <= 100; i++) Any().emit(i);
  RingView view(made.ring.get());
  EXPECT_EQ(view.Committed() + view.Discarded(), 1U);
  weft_kernel_event_status status{};
  status.size = sizeof(status);
  EXPECT_EQ(Control(made.event.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
}

TEST(LifetimeTest, AnEventThatStaysEndsWithItsSession) {
  Recording made = Record(Any().event());
  made.event.reset();
  Event staying = Any().event();
  staying.raw().flags = WEFT_KERNEL_EVENT_STAYS;
  ASSERT_EQ(staying.AddTo(made.ring.get()), 0);
  ASSERT_EQ(Switch(made.session.get(), 1), 0);
  for (uint64_t i = 1; i <= 10; i++) Any().emit(i);
  made.session.reset();
  for (uint64_t i = 1; i <= 10; i++) Any().emit(i);
  const RingView view(made.ring.get());
  EXPECT_EQ(view.Committed(), 10U);
}

TEST(LifetimeTest, AKilledReaderAndItsSessionLeaveNothing) {
  const Noise noise(Any().emit);
  for (int round = 0; round < 5; round++) {
    std::array<int, 2> started{};
    ASSERT_EQ(::pipe(started.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const Recording made = Record(Any().event());
      RingView view(made.ring.get());
      Switch(made.session.get(), 1);
      if (::write(started[1], "x", 1) != 1) ::_exit(1);
      for (;;) view.DrainAll([](uint32_t, const SeenRecord&) {});
    }
    ::close(started[1]);
    char byte = 0;
    EXPECT_EQ(::read(started[0], &byte, 1), 1);
    ::close(started[0]);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  EXPECT_EQ(UnloadModule(), 0);
  EXPECT_EQ(LoadModule(), 0);
}

// Makes an event of each of Kinds().
void EmitAll(uint64_t value) {
  for (const Source& source : Sources()) source.emit(value);
}

// Returns makers of an event of each kind that has a probe.
std::vector<std::function<Event()>> Kinds() {
  std::vector<std::function<Event()>> kinds;
  for (const Source& source : Sources()) kinds.push_back(source.event);
  kinds.emplace_back([] {
    Event event = Event::SyscallExit(SYS_sched_get_priority_max);
    event.Field("returned", 7);
    return event;
  });
  kinds.emplace_back([] {
    PlaceInFile place = Locate(reinterpret_cast<const void*>(&WeftTarget));
    Event event = Event::Uretprobe(std::move(place.file), place.offset);
    event.Field("value", 0);
    return event;
  });
  return kinds;
}

// Events of the session's state, in a ring that no other event fills, and all of a dump.
void DumpState(int session) {
  const UniqueFd ring = OpenRing(session);
  std::vector<UniqueFd> events;
  for (const uint32_t state :
       {WEFT_KERNEL_STATE_START, WEFT_KERNEL_STATE_THREAD, WEFT_KERNEL_STATE_END}) {
    Event event = Event::State(state);
    event.Field("value", 0);
    events.emplace_back(event.AddTo(ring.get()));
  }
  EXPECT_EQ(Statedump(session), 0);
  EXPECT_GT(RingView(ring.get()).Committed(), 2U);
}

TEST(LifetimeTest, LoadsAndUnloadsUnderLoad) {
  const Noise noise(EmitAll);
  const std::vector<std::function<Event()>> kinds = Kinds();
  const uint64_t rounds = Scaled(1) > 1 ? 1000 : 50;
  for (uint64_t round = 0; round < rounds; round++) {
    {
      const Recording made = Record(kinds[round % kinds.size()]());
      ASSERT_TRUE(made.valid()) << round;
      const RingView view(made.ring.get());
      ASSERT_EQ(Switch(made.session.get(), 1), 0);
      for (int i = 0; view.Committed() == 0 && i < 10'000; i++) ::usleep(1000);
      ASSERT_GT(view.Committed(), 0U) << round;
      if (round % 3 == 0) DumpState(made.session.get());
      if (round % 2 == 0) {
        ASSERT_EQ(Switch(made.session.get(), 0), 0);
      }
    }
    ASSERT_EQ(UnloadModule(), 0) << round;
    ASSERT_FALSE(ModuleIsLoaded());
    ASSERT_EQ(LoadModule(), 0) << round;
  }
}

}  // namespace
}  // namespace weft::kmod
