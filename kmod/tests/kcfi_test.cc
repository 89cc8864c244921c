// SPDX-License-Identifier: GPL-2.0-only
// weft.ko in a kernel that checks the type of each indirect call (kCFI) and panics where it is
// another one than the caller means: what such a kernel could not bear is refused, and not there by
// what the module says of itself; kernel probes record. Uprobe and statedump tests run beside
// these.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr uint8_t kReturned = 7;
constexpr uint8_t kDuration = 8;
constexpr int32_t kOfFirst = 112;  // struct pt_regs: di
constexpr const char* kFunction = "__x64_sys_sched_get_priority_max";
constexpr uint64_t kCalls = 1000;
constexpr uint64_t kNoPolicy = 1'000'000;  // and above: EINVAL

void Call(uint64_t policy) { ::syscall(SYS_sched_get_priority_max, policy); }

TEST(KcfiTest, TheModuleReportsMissingFeatures) {
  EXPECT_EQ(Features(), uint32_t{WEFT_KERNEL_KPROBES | WEFT_KERNEL_UPROBES | WEFT_KERNEL_SCOPES |
                                 WEFT_KERNEL_PARTS});
}

TEST(KcfiTest, TracepointsAndSystemCallsAreRefused) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  const UniqueFd ring = OpenRing(session.get());
  ASSERT_TRUE(ring);
  for (const char* name : {"sched_switch", "sys_enter", "itimer_state", "no_such"})
    EXPECT_EQ(Event::Tracepoint(name).AddTo(ring.get()), -EOPNOTSUPP) << name;
  for (const uint32_t number : {SYS_read, SYS_getppid, 100'000}) {
    EXPECT_EQ(Event::SyscallEntry(number).AddTo(ring.get()), -EOPNOTSUPP) << number;
    EXPECT_EQ(Event::SyscallExit(number).AddTo(ring.get()), -EOPNOTSUPP) << number;
  }
  Event compat = Event::SyscallEntry(SYS_read);
  compat.raw().table = WEFT_KERNEL_SYSCALLS_COMPAT;
  EXPECT_EQ(compat.AddTo(ring.get()), -EOPNOTSUPP);
  EXPECT_EQ(Switch(session.get(), 1), 0);
  Call(kNoPolicy);
  EXPECT_EQ(RingView(ring.get()).Committed(), 0U);
}

TEST(KcfiTest, KernelProbesRecordEachCall) {
  Event entry = Event::Kprobe(kFunction);
  entry.Load("first", 0, kOfFirst, 0);
  const Recording recording = Record(std::move(entry));
  ASSERT_TRUE(recording.valid());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  for (uint64_t i = 0; i < kCalls; i++) Call(kNoPolicy + i);
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  Call(kNoPolicy);
  RingView view(recording.ring.get());
  std::vector<bool> seen(kCalls);
  EXPECT_EQ(view.DrainAll([&](uint32_t, const SeenRecord& record) {
    const uint64_t index = record.Field(0) - kNoPolicy;
    ASSERT_LT(index, kCalls);
    EXPECT_FALSE(seen[index]);
    seen[index] = true;
  }),
            kCalls);
  EXPECT_EQ(view.problem(), "");
}

TEST(KcfiTest, KernelProbesOfReturnsRecordEachReturn) {
  Event exit = Event::Kretprobe(kFunction);
  exit.Field("returned", kReturned).Field("duration", kDuration);
  const Recording recording = Record(std::move(exit));
  ASSERT_TRUE(recording.valid());
  ASSERT_EQ(Switch(recording.session.get(), 1), 0);
  for (uint64_t i = 0; i < kCalls; i++) Call(kNoPolicy);
  ASSERT_EQ(Switch(recording.session.get(), 0), 0);
  RingView view(recording.ring.get());
  EXPECT_EQ(view.DrainAll([&](uint32_t, const SeenRecord& record) {
    EXPECT_EQ(record.Field(0), static_cast<uint64_t>(-EINVAL));
    EXPECT_GT(record.Field(1), 0U);
  }),
            kCalls);
  EXPECT_EQ(view.problem(), "");
}

}  // namespace
}  // namespace weft::kmod
