// SPDX-License-Identifier: GPL-2.0-only
// 100,000 calls of the module's ioctls, from right structs to random bytes, by several threads on the same
// descriptors, while events come. Nothing is expected of a call but that it returns; what the kernel says
// of a mistake makes the guest's run fail. WEFT_FUZZ_SEED replays a run, as far as threads allow.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "kmod/tests/load.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kCalls = 100'000;
constexpr unsigned kThreads = 4;
// Descriptors at a time. Rings are memory, and events of sessions that are on slow everything down.
constexpr size_t kPool = 24;
constexpr size_t kBytes = 512;  // more than any struct
constexpr uint32_t kMaxSlotShift = 16;

constexpr std::array<unsigned long, 9> kRequests = {
    WEFT_IOCTL_ABI,   WEFT_IOCTL_SESSION,      WEFT_IOCTL_SWITCH,
    WEFT_IOCTL_SCOPE, WEFT_IOCTL_CHANNEL,      WEFT_IOCTL_EVENT,
    WEFT_IOCTL_EVENT, WEFT_IOCTL_EVENT_STATUS, _IOWR(WEFT_KERNEL_IOC, 0x7f, weft_kernel_abi)};

// Descriptors that the threads share: any may be closed at any time by any of them.
class Pool {
 public:
  int Pick(uint64_t random) {
    const std::scoped_lock lock(mutex_);
    return fds_.empty() ? -1 : fds_[random % fds_.size()];
  }
  void Add(int fd, uint64_t random) {
    int gone = -1;
    {
      const std::scoped_lock lock(mutex_);
      if (fds_.size() < kPool)
        fds_.push_back(fd);
      else
        gone = std::exchange(fds_[1 + random % (kPool - 1)], fd);  // the first is the device
    }
    if (gone >= 0) ::close(gone);
  }
  void Clear() {
    for (const int fd : fds_) ::close(fd);
    fds_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<int> fds_;
};

class Fuzzer {
 public:
  Fuzzer(Pool& pool, uint64_t seed) : pool_(&pool), random_(seed) {}

  // True: the call was accepted.
  bool Step() {
    const int fd = pool_->Pick(random_());
    if (Chance(20)) Use(fd);
    const unsigned long request = kRequests[random_() % kRequests.size()];
    std::vector<uint8_t> bytes(kBytes);
    Event event = AnyEvent();
    Right(request, event, bytes);
    if (!Chance(4)) Spoil(bytes);
    const int made = Control(fd, request, bytes.data());
    if (made > 2) pool_->Add(made, random_());
    return made >= 0;
  }

 private:
  bool Chance(unsigned one_of) { return random_() % one_of == 0; }

  Event AnyEvent() {
    static constexpr std::array<const char*, 6> kNames = {
        "sys_enter", "sched_switch", "itimer_state", "softirq_entry", "no_such", "sched_waking"};
    const char* name = kNames[random_() % kNames.size()];
    Event event = Chance(8)   ? Event::SyscallEntry(random_() % 500)
                  : Chance(8) ? Event::SyscallExit(random_() % 500)
                  : Chance(8) ? Event::Kprobe("do_nanosleep")
                  : Chance(8) ? Event::Kretprobe("do_nanosleep")
                              : Event::Tracepoint(name);
    for (uint64_t i = random_() % 4; i > 0; i--)
      event.Field("f" + std::to_string(i), random_() % 4);
    if (Chance(4)) event.Load("l", random_() % 2, static_cast<int32_t>(random_() % 64));
    event.Finish();
    // What the struct points to is spoilt as well; the fetch program above all.
    if (Chance(3) && !event.operations().empty()) {
      auto* at = reinterpret_cast<uint8_t*>(event.operations().data());
      at[random_() % (event.operations().size() * sizeof(weft_fetch_op))] =
          static_cast<uint8_t>(Number());
    }
    if (Chance(3))
      event.description()[random_() % event.description().size()] = static_cast<uint8_t>(Number());
    if (Chance(8)) event.Filter(std::vector<uint8_t>(random_() % 128, 0x57));
    return event;
  }

  // A struct that would be accepted, on the right descriptor.
  void Right(unsigned long request, Event& event, std::vector<uint8_t>& bytes) {
    const auto put = [&bytes](const auto& value) {
      std::memcpy(bytes.data(), &value, sizeof(value));
    };
    weft_kernel_channel channel = RightChannel();
    channel.slot_shift = 13 + random_() % (kMaxSlotShift - 12);
    channel.subbuf_shift = 12;
    channel.mode = random_() % 2;
    switch (request) {
      case WEFT_IOCTL_SESSION:
        return put(weft_kernel_session{.size = sizeof(weft_kernel_session),
                                       .flags = static_cast<uint32_t>(random_() % 2)});
      case WEFT_IOCTL_SWITCH:
        return put(
            weft_kernel_switch{sizeof(weft_kernel_switch), static_cast<uint32_t>(random_() % 2)});
      case WEFT_IOCTL_SCOPE:
        return put(weft_kernel_scope{.size = sizeof(weft_kernel_scope),
                                     .change = 1 + static_cast<uint32_t>(random_() % 2),
                                     .cgroup = random_() % 4});
      case WEFT_IOCTL_CHANNEL:
        return put(channel);
      case WEFT_IOCTL_EVENT:
        if (Chance(4)) event.raw().flags = WEFT_KERNEL_EVENT_STAYS;
        return put(event.Finish());
      case WEFT_IOCTL_EVENT_STATUS:
        return put(weft_kernel_event_status{.size = sizeof(weft_kernel_event_status)});
      default:
        return put(weft_kernel_abi{.size = sizeof(weft_kernel_abi)});
    }
  }

  // Values that break arithmetic more often than random ones do.
  uint64_t Number() {
    static constexpr std::array<uint64_t, 10> kEdges = {
        0, 1, 2, 4095, 4096, 65535, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63};
    return Chance(2) ? kEdges[random_() % kEdges.size()] : random_();
  }

  void Spoil(std::vector<uint8_t>& bytes) {
    for (uint64_t i = 1 + random_() % 3; i > 0; i--) {
      const uint64_t value = Number();
      const size_t width = size_t{1} << (random_() % 4);
      const size_t at = random_() % (128 / width) * width;
      std::memcpy(bytes.data() + at, &value, width);
    }
    // No ring of gigabytes: what is tried here is not the machine's memory.
    weft_kernel_channel channel;
    std::memcpy(&channel, bytes.data(), sizeof(channel));
    if (channel.slot_shift > kMaxSlotShift && channel.slot_shift <= WEFT_RING_MAX_SLOT_SHIFT) {
      channel.slot_shift = kMaxSlotShift;
      std::memcpy(bytes.data(), &channel, sizeof(channel));
    }
  }

  // What else one does with descriptors.
  void Use(int fd) {
    std::array<uint8_t, 4096> bytes{};
    pollfd wanted{fd, POLLIN, 0};
    switch (random_() % 4) {
      case 0:
        EXPECT_LE(::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(Number())), 4096);
        return;
      case 1:
        ::poll(&wanted, 1, 0);
        return;
      default: {
        void* map = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                           static_cast<off_t>(Chance(2) ? 0 : Number() & ~4095ULL));
        if (map == MAP_FAILED) return;
        auto* words = static_cast<uint64_t*>(map);
        for (int i = 0; i < 16; i++) words[random_() % 512] = Number();
        ::munmap(map, 4096);
      }
    }
  }

  Pool* pool_;
  std::mt19937_64 random_;
};

TEST(FuzzTest, NoSequenceOfCallsHurtsTheKernel) {
  const char* text = std::getenv("WEFT_FUZZ_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
  std::cout << "WEFT_FUZZ_SEED=" << seed << std::endl;
  Pool pool;
  pool.Add(OpenDevice().release(), 0);
  std::atomic<uint64_t> accepted = 0;
  {
    const Noise noise(Sources()[0].emit, 1);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; t++) {
      threads.emplace_back([&pool, &accepted, seed, t] {
        Fuzzer fuzzer(pool, seed + t);
        for (uint64_t i = 0; i < Scaled(kCalls) / kThreads; i++) accepted += fuzzer.Step() ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  pool.Clear();
  std::cout << accepted << " of " << Scaled(kCalls) << " calls were accepted" << std::endl;
  EXPECT_GT(accepted, Scaled(kCalls) / 100) << "hardly anything gets past the first checks";
  EXPECT_EQ(UnloadModule(), 0);
  EXPECT_EQ(LoadModule(), 0);
}

}  // namespace
}  // namespace weft::kmod
