// SPDX-License-Identifier: GPL-2.0-only
// Trackers (WEFT_IOCTL_TRACK): who is recorded, in sessions of all and in sessions of a cgroup.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr uint32_t kSomeId = 4242;

int Track(const UniqueFd& session, uint32_t kind, uint64_t value,
          uint32_t change = WEFT_KERNEL_TRACK_ADD) {
  weft_kernel_track track{};
  track.size = sizeof(track);
  track.kind = kind;
  track.change = change;
  track.value = value;
  return Control(session.get(), WEFT_IOCTL_TRACK, &track);
}

// Runs `body` in a child, which then ends.
void InChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

void Emit() { ::syscall(SYS_getppid); }

// A session with the system call getppid, on.
struct Session {
  UniqueFd device = OpenDevice();
  UniqueFd session;
  UniqueFd ring;
  UniqueFd event;

  explicit Session(uint32_t flags, bool kprobe = false)
      : session(OpenSession(device.get(), flags)), ring(OpenRing(session.get())) {
    Event wanted =
        kprobe ? Event::Kretprobe("__x64_sys_getppid") : Event::SyscallEntry(SYS_getppid);
    event = UniqueFd(wanted.AddTo(ring.get()));
    EXPECT_TRUE(event);
    EXPECT_EQ(Switch(session.get(), 1), 0);
  }
  [[nodiscard]] uint64_t Records() const { return RingView(ring.get()).Committed(); }
  // Returns the number of records that `body` makes.
  uint64_t Made(const std::function<void()>& body) const {
    const uint64_t before = Records();
    body();
    return Records() - before;
  }
};

TEST(WhomTest, OneTrackedProcessAndNoOther) {
  for (const bool kprobe : {false, true}) {
    const Session all(WEFT_KERNEL_SESSION_ALL, kprobe);
    EXPECT_EQ(all.Made(Emit), 1U);
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_VPID, 1), 0);
    EXPECT_EQ(all.Made(Emit), 0U);
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_VPID, static_cast<uint64_t>(::getpid())), 0);
    EXPECT_EQ(all.Made(Emit), 1U);
    EXPECT_EQ(all.Made([] { InChild(Emit); }), 0U) << "its child is another process";
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_PID, 1), 0);
    EXPECT_EQ(all.Made(Emit), 0U) << "each kind with values must fit";
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_PID, 1, WEFT_KERNEL_TRACK_REMOVE), 0);
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_VPID, 1, WEFT_KERNEL_TRACK_REMOVE), 0);
    EXPECT_EQ(all.Made(Emit), 1U);
    ASSERT_EQ(Track(all.session, WEFT_KERNEL_TRACK_VPID, static_cast<uint64_t>(::getpid()),
                    WEFT_KERNEL_TRACK_REMOVE),
              0);
    EXPECT_EQ(all.Made([] { InChild(Emit); }), 1U) << "a kind without values asks for nothing";
  }
}

TEST(WhomTest, UsersAndGroupsAndRootIsZero) {
  for (const uint32_t kind : {WEFT_KERNEL_TRACK_UID, WEFT_KERNEL_TRACK_VUID, WEFT_KERNEL_TRACK_GID,
                              WEFT_KERNEL_TRACK_VGID}) {
    SCOPED_TRACE(kind);
    const auto as_another = [] {
      InChild([] {
        if (::setresgid(kSomeId, kSomeId, kSomeId) != 0 ||
            ::setresuid(kSomeId, kSomeId, kSomeId) != 0)
          ::_exit(1);
        Emit();
      });
    };
    const Session all(WEFT_KERNEL_SESSION_ALL);
    ASSERT_EQ(Track(all.session, kind, kSomeId), 0);
    EXPECT_EQ(all.Made(Emit), 0U);
    EXPECT_EQ(all.Made(as_another), 1U);
    ASSERT_EQ(Track(all.session, kind, 0), 0);
    ASSERT_EQ(Track(all.session, kind, kSomeId, WEFT_KERNEL_TRACK_REMOVE), 0);
    EXPECT_EQ(all.Made(Emit), 1U);
    EXPECT_EQ(all.Made(as_another), 0U);
  }
}

TEST(WhomTest, ATrackerNeverShowsTasksOutOfScope) {
  const Session scoped(0);
  ASSERT_EQ(Track(scoped.session, WEFT_KERNEL_TRACK_VPID, static_cast<uint64_t>(::getpid())), 0);
  EXPECT_EQ(scoped.Made(Emit), 0U) << "tracked, not in scope";

  const std::string folder = "/sys/fs/cgroup/whom";
  std::filesystem::create_directories(folder);
  struct stat place{};
  ASSERT_EQ(::stat(folder.c_str(), &place), 0);
  ASSERT_EQ(Scope(scoped.session.get(), WEFT_KERNEL_SCOPE_ADD, place.st_ino), 0);
  const auto inside = [&folder] {
    InChild([&folder] {
      std::ofstream(folder + "/cgroup.procs") << ::getpid() << std::flush;
      Emit();
    });
  };
  EXPECT_EQ(scoped.Made(inside), 0U) << "in scope, not tracked";
  ASSERT_EQ(Track(scoped.session, WEFT_KERNEL_TRACK_VPID, static_cast<uint64_t>(::getpid()),
                  WEFT_KERNEL_TRACK_REMOVE),
            0);
  EXPECT_EQ(scoped.Made(inside), 1U);
  EXPECT_EQ(scoped.Made(Emit), 0U);
}

// The subject of a wake-up is a task other than the running one, and may not be a task at all.
TEST(WhomTest, ASubjectIsMatchedByItsOwnIds) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  const UniqueFd ring = OpenRing(session.get());
  Event waking = Event::Tracepoint("sched_waking");
  waking.raw().subjects = 1;
  const UniqueFd event(waking.AddTo(ring.get()));
  ASSERT_TRUE(event);
  for (const uint32_t kind : {WEFT_KERNEL_TRACK_PID, WEFT_KERNEL_TRACK_VPID})
    ASSERT_EQ(Track(session, kind, static_cast<uint64_t>(::getpid())), 0);
  for (const uint32_t kind : {WEFT_KERNEL_TRACK_UID, WEFT_KERNEL_TRACK_VUID, WEFT_KERNEL_TRACK_GID,
                              WEFT_KERNEL_TRACK_VGID})
    ASSERT_EQ(Track(session, kind, 0), 0);
  ASSERT_EQ(Switch(session.get(), 1), 0);
  const RingView view(ring.get());
  for (int i = 0; i < 10; i++) ::usleep(1000);
  EXPECT_GE(view.Committed(), 10U) << "woken by a timer, in whatever task runs";
  ASSERT_EQ(Track(session, WEFT_KERNEL_TRACK_VUID, kSomeId), 0);
  ASSERT_EQ(Track(session, WEFT_KERNEL_TRACK_VUID, 0, WEFT_KERNEL_TRACK_REMOVE), 0);
  const uint64_t before = view.Committed();
  for (int i = 0; i < 10; i++) ::usleep(1000);
  EXPECT_EQ(view.Committed(), before);
}

}  // namespace
}  // namespace weft::kmod
