// SPDX-License-Identifier: GPL-2.0-only
// Calls of the module's ioctls, from right structs to random bytes, by several threads on the same
// descriptors, while events come; filters are the compiler's, or spoilt (filter_fuzz_test.cc has
// more of these). Nothing is expected of a call but that it returns; what the kernel says of a
// mistake makes the guest's run fail. WEFT_FUZZ_SEED replays a run, as far as threads allow. The
// short form of ./dev test runs it in 6.12 alone; the long form in 6.1 as well, with many more
// calls, and in the debug kernel.
//
// The test does not lie about a tracepoint's arguments. The module trusts its caller to say which
// argument is a task, what lies behind one that it reads plainly (WEFT_FETCH_TRUSTED), and where an
// instruction of a user's program begins (lib/event/fetch_validate.h).
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

#include "kmod/tests/filters.h"
#include "kmod/tests/load.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr unsigned kThreads = 4;
// Most descriptors that are open at a time. Rings are memory, and events of sessions that are on
// slow everything down.
constexpr size_t kPool = 24;
constexpr size_t kBytes = 512;  // more than any struct
constexpr uint32_t kMaxSlotShift = 16;
constexpr uint32_t kTaskArguments = (1U << WEFT_FETCH_MAX_ARGS) - 1;

constexpr std::array<unsigned long, 12> kRequests = {
    WEFT_IOCTL_ABI,     WEFT_IOCTL_SESSION,      WEFT_IOCTL_SWITCH,
    WEFT_IOCTL_SCOPE,   WEFT_IOCTL_TRACK,        WEFT_IOCTL_SESSION_STATUS,
    WEFT_IOCTL_CHANNEL, WEFT_IOCTL_EVENT,        WEFT_IOCTL_STATEDUMP,
    WEFT_IOCTL_EVENT,   WEFT_IOCTL_EVENT_STATUS, _IOWR(WEFT_KERNEL_IOC, 0x7f, weft_kernel_abi)};
// Contexts of all sorts: a text, a number behind pointers, a call, call stacks, a counter.
constexpr std::array<weft_context_spec, 6> kContexts = {
    {{.id = WEFT_CONTEXT_PROCNAME},
     {.id = WEFT_CONTEXT_VPID},
     {.id = WEFT_CONTEXT_VUID},
     {.id = WEFT_CONTEXT_CALLSTACK_USER},
     {.id = WEFT_CONTEXT_CALLSTACK_KERNEL},
     {.id = WEFT_CONTEXT_PERF_CPU, .perf_type = 1}}};

// Tracepoints of which we know an argument that points to a struct, or arguments that are tasks.
struct Known {
  const char* tracepoint;
  int pointer;
  uint32_t tasks;
};
constexpr std::array<Known, 6> kKnown = {{{"sys_enter", 0, 0},
                                          {"sched_switch", 1, 1U << 1 | 1U << 2},
                                          {"sched_waking", 0, 1U << 0},
                                          {"itimer_state", 1, 0},
                                          {"softirq_entry", -1, 0},
                                          {"no_such", -1, 0}}};

// Descriptors that the threads share: any may be closed at any time by any of them. A kind is the
// ioctl number that made a descriptor, 0: the device.
class Pool {
 public:
  // Returns a descriptor of this kind, if there is one.
  int Pick(unsigned kind, uint64_t random) {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < fds_.size(); i++) {
      const Entry& entry = fds_[(random + i) % fds_.size()];
      if (entry.kind == kind) return entry.fd;
    }
    return fds_[random % fds_.size()].fd;
  }
  void Add(int fd, unsigned kind, uint64_t random) {
    Entry gone{-1, 0};
    {
      const std::scoped_lock lock(mutex_);
      if (fds_.size() < kPool)
        fds_.push_back({fd, kind});
      else
        gone =
            std::exchange(fds_[1 + random % (kPool - 1)], {fd, kind});  // the first is the device
    }
    if (gone.fd >= 0) ::close(gone.fd);
  }
  void Clear() {
    for (const Entry& entry : fds_) ::close(entry.fd);
    fds_.clear();
  }

 private:
  struct Entry {
    int fd;
    unsigned kind;
  };
  std::mutex mutex_;
  std::vector<Entry> fds_;
};

// Returns the kind of descriptor that an ioctl is for.
unsigned KindFor(unsigned long request) {
  switch (request) {
    case WEFT_IOCTL_SWITCH:
    case WEFT_IOCTL_SCOPE:
    case WEFT_IOCTL_TRACK:
    case WEFT_IOCTL_SESSION_STATUS:
    case WEFT_IOCTL_CHANNEL:
    case WEFT_IOCTL_STATEDUMP:
      return _IOC_NR(WEFT_IOCTL_SESSION);
    case WEFT_IOCTL_EVENT:
      return _IOC_NR(WEFT_IOCTL_CHANNEL);
    case WEFT_IOCTL_EVENT_STATUS:
      return _IOC_NR(WEFT_IOCTL_EVENT);
    default:
      return 0;
  }
}

class Fuzzer {
 public:
  Fuzzer(Pool& pool, uint64_t seed) : pool_(&pool), random_(seed) {}

  // Returns true if the call was accepted.
  bool Step() {
    const unsigned long request = AnyRequest();
    const unsigned kind = Chance(8) ? random_() % 64 : KindFor(request);
    const int fd = pool_->Pick(kind, random_());
    if (Chance(20)) Use(fd);
    std::vector<uint8_t> bytes(kBytes);
    if (Chance(8)) return Call(fd, Chance(2) ? request : AnyNumber(), RandomBytes(request, bytes));
    Event event = AnyEvent();
    Right(request, event, bytes);
    if (!Chance(4)) Spoil(bytes, request);
    return Call(fd, request, bytes);
  }

 private:
  bool Chance(unsigned one_of) { return random_() % one_of == 0; }

  bool Call(int fd, unsigned long request, std::vector<uint8_t>& bytes) {
    const int made = Control(fd, request, bytes.data());
    if (made > 2) pool_->Add(made, _IOC_NR(request), random_());
    return made >= 0;
  }

  // STATEDUMP is rare: it waits a second where no reader empties a ring that is full, and there is
  // none here.
  unsigned long AnyRequest() {
    for (;;) {
      const unsigned long request = kRequests[random_() % kRequests.size()];
      if (request != WEFT_IOCTL_STATEDUMP || Chance(16)) return request;
    }
  }

  // Returns the number of an ioctl, which may not exist.
  unsigned long AnyNumber() {
    return Chance(4) ? random_() & 0xffffffff
                     : _IOC(random_() % 4, WEFT_KERNEL_IOC, random_() % 64, random_() % 256);
  }

  // Returns random bytes, perhaps with the right size.
  std::vector<uint8_t>& RandomBytes(unsigned long request, std::vector<uint8_t>& bytes) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    const auto size = static_cast<uint32_t>(_IOC_SIZE(request));
    if (Chance(2)) std::memcpy(bytes.data(), &size, sizeof(size));
    return bytes;
  }

  Event AnyEvent() {
    const Known& known = kKnown[random_() % kKnown.size()];
    Event event = Chance(8)   ? Event::SyscallEntry(random_() % 500)
                  : Chance(8) ? Event::SyscallExit(random_() % 500)
                  : Chance(8) ? Event::Kprobe("do_nanosleep")
                  : Chance(8) ? Event::Kretprobe("do_nanosleep")
                  : Chance(8) ? Event::State(random_() % (WEFT_KERNEL_STATE_MAX + 2))
                  : Chance(6) ? AnyUprobe()
                              : Event::Tracepoint(known.tracepoint);
    for (uint64_t i = random_() % 4; i > 0; i--)
      event.Field("f" + std::to_string(i), random_() % 4);
    const bool tracepoint = event.raw().kind == WEFT_KERNEL_TRACEPOINT;
    if (tracepoint && known.pointer >= 0 && Chance(4))
      event.Load("l", static_cast<uint8_t>(known.pointer), static_cast<int32_t>(random_() % 32));
    if (tracepoint && Chance(4)) event.raw().subjects = known.tasks | Chance(2) << 31;
    event.Finish();
    // Also spoils the memory that the struct points to, above all the fetch program.
    if (Chance(3) && !event.operations().empty()) SpoilProgram(event.operations());
    if (Chance(3))
      event.description()[random_() % event.description().size()] = static_cast<uint8_t>(Number());
    if (Chance(3)) event.Filter(Chance(3) ? filters_.Right(random_) : filters_.Spoilt(random_));
    return event;
  }

  // Probes the function that makes the noise, so that the probe is hit.
  Event AnyUprobe() {
    PlaceInFile place = Locate(reinterpret_cast<const void*>(&WeftTarget));
    Event event = Chance(2) ? Event::Uprobe(std::move(place.file), place.offset)
                            : Event::Uretprobe(std::move(place.file), place.offset);
    if (Chance(2)) event.Register("r", static_cast<uint8_t>(random_() % WEFT_FETCH_REGISTERS));
    if (Chance(2))
      event.LoadUser("u", static_cast<uint8_t>(random_() % WEFT_FETCH_REGISTERS),
                     static_cast<int32_t>(random_()));
    return event;
  }

  void SpoilProgram(std::vector<weft_fetch_op>& operations) {
    weft_fetch_op& op = operations[random_() % operations.size()];
    auto* bytes = reinterpret_cast<uint8_t*>(&op);
    bytes[random_() % sizeof(op)] = static_cast<uint8_t>(Number());
    if (op.code == WEFT_FETCH_TASK) op.code = WEFT_FETCH_ADD;
    // The argument that it follows may be another one now.
    for (weft_fetch_op& each : operations)
      each.flags &= static_cast<uint8_t>(~unsigned{WEFT_FETCH_TRUSTED});
  }

  // Makes a struct that would be accepted, for the right descriptor.
  void Right(unsigned long request, Event& event, std::vector<uint8_t>& bytes) {
    const auto put = [&bytes](const auto& value) {
      std::memcpy(bytes.data(), &value, sizeof(value));
    };
    weft_kernel_channel channel = RightChannel();
    channel.slot_shift = 13 + random_() % (kMaxSlotShift - 12);
    channel.subbuf_shift = 12;
    channel.mode = random_() % 2;
    channel.context_count = static_cast<uint32_t>(random_() % (kContexts.size() + 1));
    if (channel.context_count > 0) channel.contexts = reinterpret_cast<uintptr_t>(&kContexts);
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
      case WEFT_IOCTL_TRACK:
        return put(weft_kernel_track{.size = sizeof(weft_kernel_track),
                                     .kind = 1 + static_cast<uint32_t>(random_() % 6),
                                     .change = 1 + static_cast<uint32_t>(random_() % 2),
                                     .value = random_() % 4});
      case WEFT_IOCTL_SESSION_STATUS:
        return put(weft_kernel_session_status{.size = sizeof(weft_kernel_session_status)});
      case WEFT_IOCTL_CHANNEL:
        return put(channel);
      case WEFT_IOCTL_STATEDUMP:
        return put(weft_kernel_statedump{.size = sizeof(weft_kernel_statedump)});
      case WEFT_IOCTL_EVENT:
        if (Chance(4)) event.raw().flags = WEFT_KERNEL_EVENT_STAYS;
        return put(event.Finish());
      case WEFT_IOCTL_EVENT_STATUS:
        return put(weft_kernel_event_status{.size = sizeof(weft_kernel_event_status)});
      default:
        return put(weft_kernel_abi{.size = sizeof(weft_kernel_abi)});
    }
  }

  // Returns values that break arithmetic more often than random ones do.
  uint64_t Number() {
    static constexpr std::array<uint64_t, 10> kEdges = {
        0, 1, 2, 4095, 4096, 65535, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63};
    return Chance(2) ? kEdges[random_() % kEdges.size()] : random_();
  }

  void Spoil(std::vector<uint8_t>& bytes, unsigned long request) {
    weft_kernel_event before;
    std::memcpy(&before, bytes.data(), sizeof(before));
    for (uint64_t i = 1 + random_() % 3; i > 0; i--) {
      const uint64_t value = Number();
      const size_t width = size_t{1} << (random_() % 4);
      const size_t at = random_() % (128 / width) * width;
      std::memcpy(bytes.data() + at, &value, width);
    }
    weft_kernel_event event;
    std::memcpy(&event, bytes.data(), sizeof(event));
    if (request == WEFT_IOCTL_EVENT && (event.subjects & kTaskArguments) != 0) {
      event.subjects = (event.subjects & ~kTaskArguments) | (before.subjects & kTaskArguments);
      std::memcpy(bytes.data(), &event, sizeof(event));
    }
    // Sets no breakpoint inside an instruction of this program, and no counter in its data.
    if (request == WEFT_IOCTL_EVENT &&
        (event.kind == WEFT_KERNEL_UPROBE || event.kind == WEFT_KERNEL_URETPROBE)) {
      event.offset = before.offset;
      event.semaphore = before.semaphore;
      std::memcpy(bytes.data(), &event, sizeof(event));
    }
    // No ring of gigabytes: what is tried here is not the machine's memory.
    weft_kernel_channel channel;
    std::memcpy(&channel, bytes.data(), sizeof(channel));
    if (channel.slot_shift > kMaxSlotShift && channel.slot_shift <= WEFT_RING_MAX_SLOT_SHIFT) {
      channel.slot_shift = kMaxSlotShift;
      std::memcpy(bytes.data(), &channel, sizeof(channel));
    }
  }

  // Uses a descriptor in other ways than by ioctl.
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
  const Filters filters_{NumberExpressions()};
};

TEST(FuzzTest, NoSequenceOfCallsHurtsTheKernel) {
  const char* text = std::getenv("WEFT_FUZZ_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device()();
  std::cout << "WEFT_FUZZ_SEED=" << seed << std::endl;
  const uint64_t calls = IsLong() ? 1'000'000 : 25'000;
  Pool pool;
  pool.Add(OpenDevice().release(), 0, 0);
  std::atomic<uint64_t> accepted = 0;
  {
    const Noise noise(Sources()[0].emit, 1);
    const Noise targets([](uint64_t value) { WeftTarget(value); }, 1);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; t++) {
      threads.emplace_back([&pool, &accepted, calls, seed, t] {
        Fuzzer fuzzer(pool, seed + t);
        for (uint64_t i = 0; i < calls / kThreads; i++) accepted += fuzzer.Step() ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  pool.Clear();
  std::cout << accepted << " of " << calls << " calls were accepted" << std::endl;
  EXPECT_GT(accepted, calls / 20) << "hardly anything gets past the first checks";
  EXPECT_EQ(UnloadModule(), 0);
  EXPECT_EQ(LoadModule(), 0);
}

}  // namespace
}  // namespace weft::kmod
