// SPDX-License-Identifier: GPL-2.0-only
// The worked example of docs/formats/kernel.md: the bytes that go in are those of the page, and
// what comes out is, too, but for the time and the thread's number.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "kmod/tests/hex.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr std::string_view kDescription =
    "69 00 00 00 01 00 03 00 06 00 00 00 14 00 00 00 "
    "00 00 00 00 00 00 00 00 73 79 73 63 61 6c 6c 5f "
    "65 6e 74 72 79 3a 77 72 69 74 65 00 13 00 00 00 "
    "01 01 04 0a 00 00 00 00 03 00 00 00 66 64 00 14 "
    "00 00 00 05 04 01 00 00 00 00 00 04 00 04 00 62 "
    "75 66 00 16 00 00 00 01 00 08 0a 00 00 00 00 06 "
    "00 00 00 63 6f 75 6e 74 00";
constexpr std::string_view kProgram =
    "01 00 04 01 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "01 02 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "05 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "01 01 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "13 00 01 04 00 00 00 00 10 00 00 00 00 00 00 00 "
    "01 02 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00";
constexpr std::string_view kRecord =
    "2a 00 00 00 00 00 00 00 "
    "f0 ad 51 cc 02 00 00 00 "
    "8c 00 00 00 "
    "09 00 00 00 "
    "06 00 00 00 "
    "06 00 00 00 00 00 00 00 "
    "68 65 6c 6c 6f 0a";
constexpr size_t kCpuOffset = 6;
constexpr size_t kTimeOffset = 8;
constexpr size_t kVtidOffset = 16;

// Adds the page's event to `ring`; returns its descriptor.
UniqueFd AddWrite(int ring) {
  const std::vector<uint8_t> description = Bytes(kDescription);
  const std::vector<uint8_t> program = Bytes(kProgram);
  weft_kernel_event event{};
  event.size = 112;
  event.kind = 2;
  event.number = 1;
  event.subjects = 1U << 31;
  event.description = reinterpret_cast<uintptr_t>(description.data());
  event.description_size = static_cast<uint32_t>(description.size());
  event.fetch = reinterpret_cast<uintptr_t>(program.data());
  event.fetch_count = 8;
  const int result = Control(ring, WEFT_IOCTL_EVENT, &event);
  EXPECT_GE(result, 0) << std::strerror(-result);
  EXPECT_EQ(event.event_id, 0U);
  return UniqueFd(result);
}

// A session of the first of all cgroups, by the page's bytes alone, records what runs.
TEST(GoldenTest, SessionsScopesAndSwitchesAreTheseBytes) {
  const UniqueFd device = OpenDevice();
  EXPECT_EQ(WEFT_IOCTL_SESSION, 0x4020f701U);
  std::vector<uint8_t> open = Bytes(
      "20 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_TRUE(UniqueFd(Control(device.get(), 0x4020f701U, open.data())));
  open[4] = 0;
  const UniqueFd session(Control(device.get(), 0x4020f701U, open.data()));
  ASSERT_TRUE(session);
  const UniqueFd ring = OpenRing(session.get());
  Event getppid = Event::SyscallEntry(SYS_getppid);
  const UniqueFd event(getppid.AddTo(ring.get()));
  EXPECT_EQ(WEFT_IOCTL_SCOPE, 0x4020f711U);
  std::vector<uint8_t> scope = Bytes(
      "20 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(Control(session.get(), 0x4020f711U, scope.data()), 0);
  EXPECT_EQ(WEFT_IOCTL_SWITCH, 0x4008f710U);
  std::vector<uint8_t> on = Bytes("08 00 00 00 01 00 00 00");
  EXPECT_EQ(Control(session.get(), 0x4008f710U, on.data()), 0);
  const RingView view(ring.get());
  ::syscall(SYS_getppid);
  const uint64_t recorded = view.Committed();
  EXPECT_GT(recorded, 0U);
  scope[4] = 2;
  EXPECT_EQ(Control(session.get(), 0x4020f711U, scope.data()), 0);
  ::syscall(SYS_getppid);
  EXPECT_EQ(view.Committed(), recorded);
}

TEST(GoldenTest, TheModulesVersionIsAskedForByTheseBytes) {
  const UniqueFd device = OpenDevice();
  EXPECT_EQ(WEFT_IOCTL_ABI, 0xc050f700U);
  std::vector<uint8_t> abi(80);
  abi[0] = 0x50;
  ASSERT_EQ(Control(device.get(), 0xc050f700U, abi.data()), 0);
  const std::vector<uint8_t> begin(abi.begin(), abi.begin() + 8);
  EXPECT_EQ(begin, Bytes("50 00 00 00 01 00 00 00"));
  EXPECT_EQ(std::vector<uint8_t>(abi.begin() + 48, abi.end()), std::vector<uint8_t>(32));
}

TEST(GoldenTest, ChannelsEventsAndTheirStateAreTheseBytes) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  EXPECT_EQ(WEFT_IOCTL_CHANNEL, 0x4040f712U);
  EXPECT_EQ(WEFT_IOCTL_EVENT, 0xc070f720U);
  std::vector<uint8_t> channel = Bytes(
      "40 00 00 00 00 00 00 00 02 00 00 00 0e 00 00 00 "
      "0c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "07 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  const UniqueFd ring(Control(session.get(), 0x4040f712U, channel.data()));
  ASSERT_TRUE(ring);
  const RingView view(ring.get());
  EXPECT_EQ(view.header().channel_id, 7U);
  EXPECT_EQ(view.header().slot_shift, 14U);
  const UniqueFd event = AddWrite(ring.get());
  EXPECT_EQ(WEFT_IOCTL_EVENT_STATUS, 0xc020f730U);
  std::vector<uint8_t> status = Bytes(
      "20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  const std::vector<uint8_t> attached = status;
  status[4] = status[8] = 0xff;  // written by the module
  EXPECT_EQ(Control(event.get(), 0xc020f730U, status.data()), 0);
  EXPECT_EQ(status, attached);
}

TEST(GoldenTest, AStatedumpIsAskedForByTheseBytes) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  EXPECT_EQ(WEFT_IOCTL_STATEDUMP, 0x4020f715U);
  std::vector<uint8_t> bytes = Bytes(
      "20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(Control(session.get(), 0x4020f715U, bytes.data()), -ESHUTDOWN) << "it is off";
}

TEST(GoldenTest, TrackersAndTheSessionsStateAreTheseBytes) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  EXPECT_EQ(WEFT_IOCTL_TRACK, 0x4028f713U);
  std::vector<uint8_t> track = Bytes(
      "28 00 00 00 02 00 00 00 01 00 00 00 00 00 00 00 "
      "d2 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00");
  EXPECT_EQ(Control(session.get(), 0x4028f713U, track.data()), 0);
  EXPECT_EQ(WEFT_IOCTL_SESSION_STATUS, 0xc020f714U);
  std::vector<uint8_t> status = Bytes(
      "20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  const std::vector<uint8_t> runs = status;
  status[4] = status[8] = status[16] = 0xff;  // written by the module
  EXPECT_EQ(Control(session.get(), 0xc020f714U, status.data()), 0);
  EXPECT_EQ(status, runs);
}

TEST(GoldenTest, TheDocumentedExampleGivesItsBytes) {
  ASSERT_NE(Features() & WEFT_KERNEL_SYSCALLS, 0U) << "no system calls";
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  weft_context_spec vtid{};
  vtid.id = 2;
  weft_kernel_channel channel{};
  channel.size = 64;
  channel.clock = 2;
  channel.slot_shift = 14;
  channel.subbuf_shift = 12;
  channel.context_count = 1;
  channel.contexts = reinterpret_cast<uintptr_t>(&vtid);
  const UniqueFd ring = OpenRing(session.get(), channel);
  const UniqueFd event = AddWrite(ring.get());
  ASSERT_TRUE(event);

  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(null, 9), 9);
  ASSERT_EQ(Switch(session.get(), 1), 0);
  ASSERT_EQ(::write(9, "hello\n", 6), 6);
  ASSERT_EQ(Switch(session.get(), 0), 0);
  ::close(9);
  ::close(null);

  std::vector<uint8_t> expected = Bytes(kRecord);
  const auto thread = static_cast<uint32_t>(::syscall(SYS_gettid));
  std::memcpy(expected.data() + kVtidOffset, &thread, sizeof(thread));
  RingView view(ring.get());
  std::vector<std::vector<uint8_t>> records;
  for (uint32_t cpu = 0; cpu < view.rings(); cpu++) {
    // Other programs of the guest write as well, so only records of this thread are compared.
    view.Drain(cpu, [&](uint32_t, const SeenRecord& record) {
      weft_record header{};
      header.size = static_cast<uint32_t>(sizeof(header) + record.payload.size());
      header.event = record.event;
      header.cpu = record.cpu;
      std::vector<uint8_t> bytes(sizeof(header));
      std::memcpy(bytes.data(), &header, sizeof(header));
      bytes.insert(bytes.end(), record.payload.begin(), record.payload.end());
      if (std::memcmp(record.payload.data(), &thread, sizeof(thread)) == 0)
        records.push_back(bytes);
      EXPECT_EQ(record.cpu, cpu);
      EXPECT_NE(record.time, 0U);
    });
  }
  EXPECT_EQ(view.problem(), "");
  ASSERT_EQ(records.size(), 1U);
  std::memset(expected.data() + kTimeOffset, 0, sizeof(uint64_t));
  std::memcpy(expected.data() + kCpuOffset, records[0].data() + kCpuOffset, sizeof(uint16_t));
  EXPECT_EQ(records[0], expected);
}

}  // namespace
}  // namespace weft::kmod
