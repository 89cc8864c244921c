// SPDX-License-Identifier: GPL-2.0-only
// Contexts whose values are not those of a word of the task's: call stacks and counters, as they
// lie in a record (lib/abi/context.h).
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kKernelHalf = 1ULL << 63;

// A session that records getppid's entry, with its number as field, behind these contexts.
struct Recorded {
  UniqueFd device = OpenDevice();
  UniqueFd session = OpenSession(device.get());
  UniqueFd ring;
  UniqueFd event;

  explicit Recorded(const std::vector<weft_context_spec>& specs, Event wanted) {
    ring = OpenRing(session.get(), specs);
    EXPECT_TRUE(ring);
    event = UniqueFd(wanted.AddTo(ring.get()));
    EXPECT_TRUE(event);
    EXPECT_EQ(Switch(session.get(), 1), 0);
  }

  // Returns the payloads of this process's records, with their contexts.
  [[nodiscard]] std::vector<std::vector<uint8_t>> Payloads() const {
    EXPECT_EQ(Switch(session.get(), 0), 0);
    std::vector<std::vector<uint8_t>> all;
    RingView view(ring.get());
    const auto pid = static_cast<int32_t>(::getpid());
    view.DrainAll([&](uint32_t, const SeenRecord& record) {
      int32_t vpid = 0;
      std::memcpy(&vpid, record.payload.data(), sizeof(vpid));
      if (vpid == pid) all.emplace_back(record.payload.begin(), record.payload.end());
    });
    EXPECT_EQ(view.problem(), "");
    return all;
  }
};

// Reads values one after the other; fails the test where there are too few bytes.
class Bytes {
 public:
  explicit Bytes(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  template <typename T>
  T Take() {
    T value{};
    EXPECT_LE(at_ + sizeof(T), bytes_.size());
    if (at_ + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::vector<uint64_t> Addresses() {
    std::vector<uint64_t> all(Take<uint32_t>());
    EXPECT_LE(all.size(), WEFT_CONTEXT_MAX_ADDRESSES);
    if (all.size() > WEFT_CONTEXT_MAX_ADDRESSES) return {};
    for (uint64_t& address : all) address = Take<uint64_t>();
    return all;
  }
  [[nodiscard]] bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::vector<uint8_t>& bytes_;
  size_t at_ = 0;
};

Event Getppid() {
  Event event = Event::SyscallEntry(SYS_getppid);
  event.Field("number", 6);
  return event;
}

// Makes the system call itself, so that no library's frame, perhaps without a frame pointer, is in
// between.
__attribute__((noinline)) long CallFromHere() {
  long result = SYS_getppid;
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  return result;
}
__attribute__((noinline, optimize("no-optimize-sibling-calls", "no-omit-frame-pointer"))) long
CallFromThere() {
  return CallFromHere() + 1;
}

void BeBusy(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

bool IsIn(uint64_t address, long (*function)()) {
  const auto start = reinterpret_cast<uintptr_t>(function);
  return address >= start && address < start + 64;
}

TEST(ContextTest, CallStacksNameTheCallers) {
  const Recorded recorded({{.id = WEFT_CONTEXT_VPID},
                           {.id = WEFT_CONTEXT_CALLSTACK_USER},
                           {.id = WEFT_CONTEXT_VTID},
                           {.id = WEFT_CONTEXT_CALLSTACK_KERNEL}},
                          Getppid());
  CallFromThere();
  const auto payloads = recorded.Payloads();
  ASSERT_EQ(payloads.size(), 1U);
  Bytes bytes(payloads[0]);
  bytes.Take<int32_t>();
  const std::vector<uint64_t> user = bytes.Addresses();
  EXPECT_EQ(bytes.Take<int32_t>(), ::gettid());
  const std::vector<uint64_t> kernel = bytes.Addresses();
  EXPECT_EQ(bytes.Take<uint64_t>(), static_cast<uint64_t>(SYS_getppid));
  EXPECT_TRUE(bytes.AtEnd());
  ASSERT_FALSE(user.empty());
  EXPECT_TRUE(IsIn(user[0], &CallFromHere)) << std::hex << user[0];
  for (const uint64_t address : user) EXPECT_LT(address, kKernelHalf);
  ASSERT_GE(kernel.size(), 2U);
  for (const uint64_t address : kernel) EXPECT_GE(address, kKernelHalf);
}

TEST(ContextTest, AnInterruptHasAKernelStackOnly) {
  Event tick = Event::Tracepoint("hrtimer_expire_entry");
  const Recorded recorded({{.id = WEFT_CONTEXT_VPID},
                           {.id = WEFT_CONTEXT_CALLSTACK_KERNEL},
                           {.id = WEFT_CONTEXT_CALLSTACK_USER}},
                          std::move(tick));
  const RingView view(recorded.ring.get());
  volatile uint64_t busy = 0;
  while (view.Committed() < 100) busy = busy + 1;
  const auto payloads = recorded.Payloads();
  for (const auto& payload : payloads) {
    Bytes bytes(payload);
    bytes.Take<int32_t>();
    EXPECT_GE(bytes.Addresses().size(), 2U);
    bytes.Addresses();
    EXPECT_TRUE(bytes.AtEnd());
  }
}

// If a CPU's time stamp counter is unstable, the kernel's own clock stands still from one late tick
// to the next. Its counter then grows, but not with each event.
TEST(ContextTest, ACounterOfTheCpuGrows) {
  const Recorded recorded({{.id = WEFT_CONTEXT_VPID},
                           {.id = WEFT_CONTEXT_PERF_CPU,
                            .perf_config = PERF_COUNT_SW_CPU_CLOCK,
                            .perf_type = PERF_TYPE_SOFTWARE},
                           {.id = WEFT_CONTEXT_CPU_ID},
                           {.id = WEFT_CONTEXT_PERF_CPU,
                            .perf_config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                            .perf_type = PERF_TYPE_SOFTWARE}},
                          Getppid());
  std::vector<uint64_t> clocks(static_cast<size_t>(Cpus()));
  std::vector<uint64_t> switches = clocks;
  for (int i = 0; i < 10; i++) {
    CallFromHere();
    BeBusy(std::chrono::milliseconds(10));
  }
  uint64_t growth = 0;
  const auto payloads = recorded.Payloads();
  ASSERT_EQ(payloads.size(), 10U);
  for (const auto& payload : payloads) {
    Bytes bytes(payload);
    bytes.Take<int32_t>();
    const auto clock = bytes.Take<uint64_t>();
    const auto cpu = bytes.Take<uint32_t>();
    const auto switched = bytes.Take<uint64_t>();
    ASSERT_LT(cpu, clocks.size());
    EXPECT_GE(clock, clocks[cpu]);
    EXPECT_GE(switched, switches[cpu]);
    if (clocks[cpu] != 0) growth += clock - clocks[cpu];
    clocks[cpu] = clock;
    switches[cpu] = switched;
  }
  EXPECT_GT(growth, 0U);
}

}  // namespace
}  // namespace weft::kmod
