// SPDX-License-Identifier: GPL-2.0-only
// What is wrong is refused, with the errno that lib/abi/kernel.h says, and nothing has changed
// then.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kmod/tests/device.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

// A page that cannot be read behind one that can: the structs end where the first does.
class Edge {
 public:
  Edge() {
    map_ = static_cast<uint8_t*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(map_ + kPage, kPage, PROT_NONE);
  }
  ~Edge() { ::munmap(map_, 2 * kPage); }
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;
  [[nodiscard]] void* Before(size_t bytes) const { return map_ + kPage - bytes; }

 private:
  static constexpr size_t kPage = 4096;
  uint8_t* map_;
};

// 0 or -errno; what the call made is ended.
int Try(int fd, unsigned long request, void* argument) {
  const int result = Control(fd, request, argument);
  if (result <= 0) return result;
  ::close(result);
  return 0;
}

// Checks the rules that all structs share. `right` is a struct that `fd` accepts.
template <typename T>
void ExpectSizeRules(int fd, unsigned long request, const T& right, const char* what) {
  SCOPED_TRACE(what);
  const auto call = [&](const std::vector<uint8_t>& bytes) {
    std::vector<uint8_t> copy = bytes;
    return Try(fd, request, copy.data());
  };
  std::vector<uint8_t> bytes(sizeof(T) + 64);
  std::memcpy(bytes.data(), &right, sizeof(right));
  const auto with_size = [&bytes](uint32_t size) {
    std::memcpy(bytes.data(), &size, sizeof(size));
    return bytes;
  };
  for (const uint32_t size : {0U, 1U, 3U}) EXPECT_EQ(call(with_size(size)), -EINVAL) << size;
  EXPECT_EQ(call(with_size(1U << 20)), -E2BIG);
  EXPECT_EQ(call(with_size(0xffffffff)), -E2BIG);
  EXPECT_EQ(call(with_size(sizeof(T) + 64)), 0) << "a later caller that asks for nothing new";
  bytes[sizeof(T) + 63] = 1;
  EXPECT_EQ(call(with_size(sizeof(T) + 64)), -E2BIG);
  EXPECT_EQ(call(with_size(sizeof(T) + 63)), 0);

  const Edge edge;
  EXPECT_EQ(Try(fd, request, nullptr), -EFAULT);
  EXPECT_EQ(Try(fd, request, reinterpret_cast<void*>(~0UL - 64)), -EFAULT);
  void* cut = edge.Before(sizeof(T) - 8);
  std::memcpy(cut, &right, sizeof(T) - 8);
  EXPECT_EQ(Try(fd, request, cut), -EFAULT);
  void* whole = edge.Before(sizeof(T));
  std::memcpy(whole, &right, sizeof(T));
  EXPECT_EQ(Try(fd, request, whole), 0) << "reads beyond its struct";
}

// Checks that each byte of the reserved words, the last `count` of 8 bytes, must be zero.
template <typename T>
void ExpectReservedWords(int fd, unsigned long request, const T& right, size_t count) {
  std::vector<uint8_t> bytes(sizeof(T));
  for (size_t i = sizeof(T) - count * sizeof(uint64_t); i < sizeof(T); i++) {
    std::memcpy(bytes.data(), &right, sizeof(right));
    bytes[i] = 1;
    EXPECT_EQ(Try(fd, request, bytes.data()), -EINVAL) << "byte " << i;
  }
}

// Checks that a call does not write behind the size that an older caller states.
template <typename T>
void ExpectShortAnswer(int fd, unsigned long request, uint32_t size) {
  std::vector<uint8_t> bytes(sizeof(T), 0xee);
  std::memset(bytes.data(), 0, size);
  std::memcpy(bytes.data(), &size, sizeof(size));
  EXPECT_EQ(Try(fd, request, bytes.data()), 0) << size;
  for (size_t i = size; i < sizeof(T); i++) EXPECT_EQ(bytes[i], 0xee) << size << ", byte " << i;
}

class AbiTest : public testing::Test {
 protected:
  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get());
  UniqueFd ring_ = OpenRing(session_.get());

  void SetUp() override {
    ASSERT_TRUE(device_);
    ASSERT_TRUE(session_);
    ASSERT_TRUE(ring_);
  }

  // Makes the right struct wrong, calls, and expects `error`.
  int Channel(const std::function<void(weft_kernel_channel&)>& change) const {
    weft_kernel_channel channel = RightChannel();
    change(channel);
    const UniqueFd made(Control(session_.get(), WEFT_IOCTL_CHANNEL, &channel));
    return made.valid() ? 0 : -errno;
  }

  int AddEvent(Event event, const std::function<void(weft_kernel_event&)>& change) const {
    change(event.Finish());
    const UniqueFd made(Control(ring_.get(), WEFT_IOCTL_EVENT, &event.raw()));
    return made.valid() ? 0 : -errno;
  }
};

Event SysEnter() {
  Event event = Event::Tracepoint("sys_enter");
  event.Field("id", 1);
  return event;
}

TEST_F(AbiTest, ReportsItsVersionAndFeatures) {
  weft_kernel_abi abi{};
  abi.size = sizeof(abi);
  ASSERT_EQ(Control(device_.get(), WEFT_IOCTL_ABI, &abi), 0);
  EXPECT_EQ(abi.size, sizeof(abi));
  EXPECT_EQ(abi.major, WEFT_KERNEL_ABI_MAJOR);
  EXPECT_EQ(abi.minor, WEFT_KERNEL_ABI_MINOR);
  EXPECT_NE(abi.features & WEFT_KERNEL_TRACEPOINTS, 0U);
  EXPECT_NE(abi.features & WEFT_KERNEL_PARTS, 0U);
  EXPECT_NE(abi.features & WEFT_KERNEL_SOCKET_ADDRESSES, 0U);
  EXPECT_NE(abi.clocks & (1U << WEFT_CLOCK_MONOTONIC), 0U);
  EXPECT_NE(::strnlen(abi.version, sizeof(abi.version)), sizeof(abi.version));
  EXPECT_GT(::strnlen(abi.version, sizeof(abi.version)), 0U);
  for (const uint64_t word : abi.reserved) EXPECT_EQ(word, 0U);
}

TEST_F(AbiTest, TheDeviceIsForRootAndCannotBeReadOrMapped) {
  struct stat place{};
  ASSERT_EQ(::stat(WEFT_KERNEL_DEVICE, &place), 0);
  EXPECT_EQ(place.st_mode, S_IFCHR | 0600U);
  char byte = 0;
  EXPECT_EQ(::read(device_.get(), &byte, 1), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, device_.get(), 0), MAP_FAILED);
}

TEST_F(AbiTest, DescriptorsCloseOnExec) {
  const UniqueFd event(SysEnter().AddTo(ring_.get()));
  for (const int fd : {device_.get(), session_.get(), ring_.get(), event.get()})
    EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
}

TEST_F(AbiTest, AnUnknownCallIsENOTTY) {
  std::vector<uint8_t> bytes(4096);
  const UniqueFd event(SysEnter().AddTo(ring_.get()));
  for (const int fd : {device_.get(), session_.get(), ring_.get(), event.get()}) {
    for (const unsigned number : {0x02U, 0x0fU, 0x1eU, 0x1fU, 0x21U, 0x31U, 0xffU})
      EXPECT_EQ(Control(fd, _IOWR(WEFT_KERNEL_IOC, number, weft_kernel_abi), bytes.data()), -ENOTTY)
          << number;
    EXPECT_EQ(Control(fd, _IOWR('T', 0, weft_kernel_abi), bytes.data()), -ENOTTY);
  }
  // A call that belongs to another kind of descriptor.
  EXPECT_EQ(Control(device_.get(), WEFT_IOCTL_SWITCH, bytes.data()), -ENOTTY);
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_EVENT, bytes.data()), -ENOTTY);
  EXPECT_EQ(Control(ring_.get(), WEFT_IOCTL_CHANNEL, bytes.data()), -ENOTTY);
  EXPECT_EQ(Control(event.get(), WEFT_IOCTL_SESSION, bytes.data()), -ENOTTY);
}

TEST_F(AbiTest, StructsMayBeShorterOrLonger) {
  weft_kernel_session session{};
  session.size = sizeof(session);
  ExpectSizeRules(device_.get(), WEFT_IOCTL_SESSION, session, "session");
  ExpectSizeRules(session_.get(), WEFT_IOCTL_CHANNEL, RightChannel(), "channel");
  Event event = SysEnter();
  ExpectSizeRules(ring_.get(), WEFT_IOCTL_EVENT, event.Finish(), "event");
}

TEST_F(AbiTest, CallsThatMakeNothingHaveTheSameRules) {
  weft_kernel_abi abi{};
  abi.size = sizeof(abi);
  ExpectSizeRules(device_.get(), WEFT_IOCTL_ABI, abi, "abi");
  weft_kernel_switch off{sizeof(off), 0};
  ExpectSizeRules(session_.get(), WEFT_IOCTL_SWITCH, off, "switch");
  weft_kernel_session_status status{};
  status.size = sizeof(status);
  ExpectSizeRules(session_.get(), WEFT_IOCTL_SESSION_STATUS, status, "session status");
  weft_kernel_track track{};
  track.size = sizeof(track);
  track.kind = WEFT_KERNEL_TRACK_VUID;
  track.change = WEFT_KERNEL_TRACK_REMOVE;
  ExpectSizeRules(session_.get(), WEFT_IOCTL_TRACK, track, "track");
  const UniqueFd scoped = OpenSession(device_.get(), 0);
  weft_kernel_scope scope{};
  scope.size = sizeof(scope);
  scope.change = WEFT_KERNEL_SCOPE_REMOVE;
  ExpectSizeRules(scoped.get(), WEFT_IOCTL_SCOPE, scope, "scope");
  const UniqueFd event(SysEnter().AddTo(ring_.get()));
  weft_kernel_event_status met{};
  met.size = sizeof(met);
  ExpectSizeRules(event.get(), WEFT_IOCTL_EVENT_STATUS, met, "event status");
}

TEST_F(AbiTest, ReservedWordsAreZero) {
  weft_kernel_abi abi{};
  abi.size = sizeof(abi);
  ExpectReservedWords(device_.get(), WEFT_IOCTL_ABI, abi, 4);
  const UniqueFd event(SysEnter().AddTo(ring_.get()));
  weft_kernel_event_status met{};
  met.size = sizeof(met);
  ExpectReservedWords(event.get(), WEFT_IOCTL_EVENT_STATUS, met, 2);
  const UniqueFd scoped = OpenSession(device_.get(), 0);
  weft_kernel_scope scope{};
  scope.size = sizeof(scope);
  scope.change = WEFT_KERNEL_SCOPE_ADD;
  scope.cgroup = 1;
  ExpectReservedWords(scoped.get(), WEFT_IOCTL_SCOPE, scope, 2);
}

TEST_F(AbiTest, AnswersAreAsLongAsTheCallersStruct) {
  for (const uint32_t size : {4U, 8U, 12U, 16U, 30U, 79U})
    ExpectShortAnswer<weft_kernel_abi>(device_.get(), WEFT_IOCTL_ABI, size);
  const UniqueFd event(SysEnter().AddTo(ring_.get()));
  for (const uint32_t size : {4U, 6U, 8U, 12U, 16U, 20U, 24U}) {
    ExpectShortAnswer<weft_kernel_event_status>(event.get(), WEFT_IOCTL_EVENT_STATUS, size);
    ExpectShortAnswer<weft_kernel_session_status>(session_.get(), WEFT_IOCTL_SESSION_STATUS, size);
  }
}

TEST_F(AbiTest, ReturnsAnEventsStatus) {
  UniqueFd session = OpenSession(device_.get());
  const UniqueFd ring = OpenRing(session.get());
  const UniqueFd event(SysEnter().AddTo(ring.get()));
  weft_kernel_event_status status{};
  status.size = sizeof(status);
  status.state = 77;
  status.missed = 77;
  ASSERT_EQ(Control(event.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
  EXPECT_EQ(status.size, sizeof(status));
  EXPECT_EQ(status.state, 0U);
  EXPECT_EQ(status.missed, 0U);
  session.reset();
  ASSERT_EQ(Control(event.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
  EXPECT_EQ(status.state, static_cast<uint32_t>(ESHUTDOWN));
}

TEST_F(AbiTest, AScopeWithAWrongField) {
  const UniqueFd session = OpenSession(device_.get(), 0);
  const auto scope = [](int fd, uint32_t change, uint64_t cgroup) {
    weft_kernel_scope arg{};
    arg.size = sizeof(arg);
    arg.change = change;
    arg.cgroup = cgroup;
    return Control(fd, WEFT_IOCTL_SCOPE, &arg);
  };
  uint64_t gone = 0;
  {
    const Cgroup cgroup("weft-abi");
    gone = cgroup.id();
    ASSERT_NE(gone, 0U);
    for (const uint32_t change : {0U, 3U, 0xffffffffU})
      EXPECT_EQ(scope(session.get(), change, gone), -EINVAL) << change;
    EXPECT_EQ(scope(session_.get(), WEFT_KERNEL_SCOPE_ADD, gone), -EINVAL)
        << "a session without a scope";
    EXPECT_EQ(scope(session_.get(), WEFT_KERNEL_SCOPE_REMOVE, gone), -EINVAL)
        << "a session without a scope";
    EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_ADD, gone), 0);
    EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_ADD, gone), 0) << "again";
  }
  EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_REMOVE, gone), 0) << "the cgroup went";
  EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_REMOVE, gone), 0) << "it is not there";
  for (const uint64_t none : {uint64_t{0}, gone, ~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_ADD, none), -ENOENT) << none;
    EXPECT_EQ(scope(session.get(), WEFT_KERNEL_SCOPE_REMOVE, none), 0) << none;
  }
}

TEST_F(AbiTest, SizesOfCallsThatMakeNothing) {
  weft_kernel_switch change{3, 1};
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SWITCH, &change), -EINVAL);
  change = {sizeof(change), 2};
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SWITCH, &change), -EINVAL);
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SWITCH, nullptr), -EFAULT);
  // Shorter: `on` is zero.
  change = {sizeof(change.size), 1};
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SWITCH, &change), 0);
}

TEST_F(AbiTest, ATrackerWithAWrongField) {
  const auto track = [this](const std::function<void(weft_kernel_track&)>& change) {
    weft_kernel_track track{};
    track.size = sizeof(track);
    track.kind = WEFT_KERNEL_TRACK_VUID;
    track.change = WEFT_KERNEL_TRACK_ADD;
    track.value = 0xffffffff;
    change(track);
    return Control(session_.get(), WEFT_IOCTL_TRACK, &track);
  };
  using Change = weft_kernel_track&;
  EXPECT_EQ(track([](Change) {}), 0);
  EXPECT_EQ(track([](Change) {}), 0) << "again";
  EXPECT_EQ(track([](Change t) { t.change = WEFT_KERNEL_TRACK_REMOVE; }), 0);
  EXPECT_EQ(track([](Change t) { t.change = WEFT_KERNEL_TRACK_REMOVE; }), 0) << "it is not there";
  for (const uint32_t kind : {0U, WEFT_KERNEL_TRACK_KINDS + 0U, 0xffffffffU})
    EXPECT_EQ(track([kind](Change t) { t.kind = kind; }), -EINVAL) << kind;
  for (const uint32_t change : {0U, 3U})
    EXPECT_EQ(track([change](Change t) { t.change = change; }), -EINVAL) << change;
  EXPECT_EQ(track([](Change t) { t.value = 1ULL << 32; }), -EINVAL);
  EXPECT_EQ(track([](Change t) { t.reserved0 = 1; }), -EINVAL);
  for (int i = 0; i < 2; i++) EXPECT_EQ(track([i](Change t) { t.reserved[i] = 1; }), -EINVAL);
  EXPECT_EQ(track([](Change t) { t.size = 3; }), -EINVAL);
}

TEST_F(AbiTest, ASessionsStatusSaysThatItRuns) {
  weft_kernel_session_status status{};
  status.size = sizeof(status);
  status.state = 77;
  status.contradictions = 77;
  status.missed_anywhere = 77;
  ASSERT_EQ(Control(session_.get(), WEFT_IOCTL_SESSION_STATUS, &status), 0);
  EXPECT_EQ(status.size, sizeof(status));
  EXPECT_EQ(status.state, WEFT_KERNEL_RUNS);
  EXPECT_EQ(status.contradictions, 0U);
  EXPECT_EQ(status.missed_anywhere, 0U);
  status.reserved = 1;
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_SESSION_STATUS, &status), -EINVAL);
}

TEST_F(AbiTest, SessionFlagsAndReservedWords) {
  weft_kernel_session session{};
  session.size = sizeof(session);
  session.flags = 1U << 1;
  EXPECT_EQ(Control(device_.get(), WEFT_IOCTL_SESSION, &session), -EINVAL);
  session.flags = 0;
  for (uint64_t& word : session.reserved) {
    word = 1;
    EXPECT_EQ(Control(device_.get(), WEFT_IOCTL_SESSION, &session), -EINVAL);
    word = 0;
  }
}

TEST_F(AbiTest, AChannelWithAWrongField) {
  using Change = weft_kernel_channel&;
  EXPECT_EQ(Channel([](Change) {}), 0);
  EXPECT_EQ(Channel([](Change c) { c.mode = 2; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.clock = 0; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.clock = 3; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.subbuf_shift = WEFT_RING_MIN_SUBBUF_SHIFT - 1; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.subbuf_shift = c.slot_shift; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.subbuf_shift = 0xffffffff; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.slot_shift = WEFT_RING_MAX_SLOT_SHIFT + 1; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.slot_shift = 0; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.slot_shift = c.subbuf_shift + 9; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.context_count = WEFT_KERNEL_MAX_CONTEXTS + 1; }), -EINVAL);
  EXPECT_EQ(Channel([](Change c) { c.context_count = 1; }), -EINVAL) << "of nothing";
  EXPECT_EQ(Channel([](Change c) { c.contexts = 4096; }), -EINVAL) << "none of these";
  EXPECT_EQ(Channel([](Change c) { c.context_count = 1, c.contexts = ~0ULL; }), -EFAULT);
  for (int i = 0; i < 3; i++)
    EXPECT_EQ(Channel([i](Change c) { c.reserved[i] = 1ULL << 63; }), -EINVAL);
}

TEST_F(AbiTest, RingsBeyondTheMachinesMemoryAreRefused) {
  const int error = Channel([](weft_kernel_channel& c) {
    c.slot_shift = WEFT_RING_MAX_SLOT_SHIFT;
    c.subbuf_shift = WEFT_RING_MAX_SLOT_SHIFT - 1;
  });
  EXPECT_EQ(error, -ENOMEM);
}

TEST_F(AbiTest, RingsThatTogetherExceedTheirPartOfTheMemoryAreRefused) {
  ring_.reset();
  weft_kernel_channel channel = RightChannel();
  UniqueFd largest;
  for (channel.slot_shift = WEFT_RING_MAX_SLOT_SHIFT; !largest; channel.slot_shift--) {
    ASSERT_GT(channel.slot_shift, 20U) << "no ring was made";
    channel.subbuf_shift = channel.slot_shift - 1;
    largest = OpenRing(session_.get(), channel);
  }
  channel.slot_shift++;
  // Two of them exceed it: a ring of twice the size was refused. The second try finds that the
  // first one left nothing counted.
  for (int i = 0; i < 2; i++)
    EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_CHANNEL, &channel), -ENOMEM);
  largest.reset();
  largest = OpenRing(session_.get(), channel);
  ASSERT_TRUE(largest) << "the memory of a ring that ended was not given back";
  largest.reset();
  // A ring whose descriptor cannot be made gives its memory back, too.
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_CHANNEL, &channel), -EMFILE);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(OpenRing(session_.get(), channel));
}

TEST_F(AbiTest, AContextWithAWrongField) {
  const auto with = [this](weft_context_spec spec) {
    return Channel([&spec](weft_kernel_channel& c) {
      c.context_count = 1;
      c.contexts = reinterpret_cast<uintptr_t>(&spec);
    });
  };
  EXPECT_EQ(with({.id = WEFT_CONTEXT_VTID}), 0);
  for (const uint16_t id : {0, 23, 127, 999}) EXPECT_EQ(with({.id = id}), -EOPNOTSUPP) << id;
  for (const uint16_t id : {WEFT_CONTEXT_PTHREAD_ID, WEFT_CONTEXT_IP, WEFT_CONTEXT_APP})
    EXPECT_EQ(with({.id = id}), -EOPNOTSUPP) << id;
  EXPECT_EQ(with({.id = WEFT_CONTEXT_VTID, .name_size = 1}), -EINVAL);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_VTID, .name_offset = 1}), -EINVAL);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_VTID, .reserved = 1}), -EINVAL);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_CALLSTACK_KERNEL}), 0);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_CALLSTACK_USER, .perf_config = 1}), -EINVAL);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_PERF_CPU, .perf_type = PERF_TYPE_SOFTWARE}), 0);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_PERF_CPU, .name_size = 1, .perf_type = 1}), -EINVAL);
  EXPECT_EQ(with({.id = WEFT_CONTEXT_PERF_CPU, .perf_type = 0xffffffff}), -EOPNOTSUPP);
}

TEST_F(AbiTest, AnEventWithAWrongField) {
  using Change = weft_kernel_event&;
  const auto add = [this](const std::function<void(Change)>& change) {
    return AddEvent(SysEnter(), change);
  };
  EXPECT_EQ(add([](Change) {}), 0);
  EXPECT_EQ(add([](Change e) { e.kind = 0; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.kind = 200; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.flags = 1U << 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.file = 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.semaphore = 2; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.twin = 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.known = 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.name_size = 0; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.name_size = 3; }), -EINVAL) << "no NUL at its end";
  EXPECT_EQ(add([](Change e) { e.name_size = WEFT_KERNEL_NAME_MAX + 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.name = 0; }), -EFAULT);
  EXPECT_EQ(add([](Change e) { e.offset = 1; }), -EINVAL) << "a kprobe's";
  EXPECT_EQ(add([](Change e) { e.number = 1; }), -EINVAL) << "a system call's";
  EXPECT_EQ(add([](Change e) { e.table = 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.subjects = 1U << 12; }), -EINVAL) << "no such argument";
  EXPECT_EQ(add([](Change e) { e.description = 0; }), -EFAULT);
  EXPECT_EQ(add([](Change e) { e.description_size--; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.description_size = 0; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.description_size = 0xffffffff; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.fetch = 0; }), -EFAULT);
  EXPECT_EQ(add([](Change e) { e.fetch_count = 1; }), -EINVAL) << "a field is not made";
  EXPECT_EQ(add([](Change e) { e.fetch_count = WEFT_FETCH_MAX_OPS + 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.filter_size = 64; }), -EINVAL) << "a size without a filter";
}

TEST_F(AbiTest, AStateEventWithAWrongField) {
  using Change = weft_kernel_event&;
  const auto add = [this](const std::function<void(Change)>& change) {
    Event event = Event::State(WEFT_KERNEL_STATE_FILE);
    event.Field("fd", 2);
    return AddEvent(std::move(event), change);
  };
  EXPECT_EQ(add([](Change) {}), 0);
  EXPECT_EQ(add([](Change e) { e.number = WEFT_KERNEL_STATE_CPU; }), 0);
  EXPECT_EQ(add([](Change e) { e.number = 0; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.number = WEFT_KERNEL_STATE_MAX + 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.table = 1; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.subjects = WEFT_KERNEL_SUBJECT_CURRENT; }), -EINVAL);
  EXPECT_EQ(add([](Change e) { e.name = 4096, e.name_size = 2; }), -EINVAL);
  Event beyond = Event::State(WEFT_KERNEL_STATE_FILE);
  beyond.Field("none", 6);
  EXPECT_EQ(AddEvent(std::move(beyond), [](Change) {}), -EINVAL) << "no such argument";
}

TEST_F(AbiTest, OnlySessionsOfAllTasksDumpTheMachinesState) {
  const UniqueFd session = OpenSession(device_.get(), 0);
  const UniqueFd ring = OpenRing(session.get());
  for (uint32_t state = 1; state <= WEFT_KERNEL_STATE_MAX; state++) {
    Event event = Event::State(state);
    event.Field("first", 0);
    const UniqueFd made(event.AddTo(ring.get()));
    EXPECT_EQ(made.valid(), state < WEFT_KERNEL_STATE_BLOCK_DEVICE) << state;
  }
}

TEST_F(AbiTest, AStatedumpWithAWrongField) {
  weft_kernel_statedump dump{};
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_STATEDUMP, &dump), -EINVAL) << "no size";
  dump.size = sizeof(dump);
  dump.flags = 1;
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_STATEDUMP, &dump), -EINVAL);
  dump.flags = 0;
  for (uint64_t& word : dump.reserved) {
    word = 1;
    EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_STATEDUMP, &dump), -EINVAL);
    word = 0;
  }
  EXPECT_EQ(Control(session_.get(), WEFT_IOCTL_STATEDUMP, nullptr), -EFAULT);
  EXPECT_EQ(Statedump(session_.get()), -ESHUTDOWN) << "it is off";
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  EXPECT_EQ(Statedump(session_.get()), -ENOENT) << "it has no such event";
  Event event = Event::State(WEFT_KERNEL_STATE_START);
  event.Field("number", 0);
  const UniqueFd made(event.AddTo(ring_.get()));
  ASSERT_TRUE(made);
  EXPECT_EQ(Statedump(session_.get()), 0);
  EXPECT_EQ(Control(ring_.get(), WEFT_IOCTL_STATEDUMP, &dump), -ENOTTY);
}

TEST_F(AbiTest, ReturnsEnoentForWhatDoesNotExist) {
  for (const char* name : {"no_such_tracepoint", "sys_ente", "sys_enter2", "weft"})
    EXPECT_EQ(AddEvent(Event::Tracepoint(name), [](weft_kernel_event&) {}), -ENOENT) << name;
  if ((Features() & WEFT_KERNEL_KPROBES) != 0) {
    EXPECT_EQ(AddEvent(Event::Kprobe("no_such_function"), [](weft_kernel_event&) {}), -ENOENT);
  }
}

TEST_F(AbiTest, RefusedEventsLeaveNoDescriptionAndNoProbe) {
  RingView view(ring_.get());
  ASSERT_EQ(view.problem(), "");
  const auto used = [&view] {
    // relaxed: no other thread writes it now
    return __atomic_load_n(&reinterpret_cast<weft_ring_header*>(view.map())->descriptions_used,
                           __ATOMIC_RELAXED);
  };
  const uint64_t before = used();
  EXPECT_EQ(AddEvent(SysEnter(), [](weft_kernel_event& e) { e.known = 1; }), -EINVAL);
  EXPECT_EQ(AddEvent(Event::Tracepoint("no_such"), [](weft_kernel_event&) {}), -ENOENT);
  EXPECT_EQ(used(), before);
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  for (int i = 0; i < 100; i++) ::getppid();
  EXPECT_EQ(view.Committed(), 0U);
}

// Runs `body` in a child without any capability, as another user. True: its expectations held.
bool Unprivileged(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool dropped = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    ::_exit(dropped && body() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(AbiTest, WithoutPrivilegeTheDeviceIsNotOpenedAndARingGetsNoEvent) {
  EXPECT_TRUE(Unprivileged([] { return !OpenDevice() && errno == EACCES; }));
  EXPECT_TRUE(Unprivileged([this] { return SysEnter().AddTo(ring_.get()) == -EPERM; }));
  ASSERT_EQ(::chmod(WEFT_KERNEL_DEVICE, 0666), 0);
  EXPECT_TRUE(Unprivileged([] { return !OpenDevice() && errno == EPERM; }));
  ASSERT_EQ(::chmod(WEFT_KERNEL_DEVICE, 0600), 0);
}

TEST_F(AbiTest, ADescriptorIsEnoughToReadTheRingAndToSwitchTheSession) {
  EXPECT_TRUE(Unprivileged([this] {
    const RingView view(ring_.get());
    return view.problem().empty() && Switch(session_.get(), 1) == 0 &&
           Switch(session_.get(), 0) == 0 && OpenRing(session_.get()).valid();
  }));
}

}  // namespace
}  // namespace weft::kmod
