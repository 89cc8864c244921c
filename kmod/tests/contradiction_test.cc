// SPDX-License-Identifier: GPL-2.0-only
// A tracer's fault never becomes the node's: a ring that contradicts itself (contradict.ko makes
// it) ends its session, says why, and counts every event; nothing else notices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_event.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kArmedAt = 1'000;  // in the middle of the ring's first sub-buffer
constexpr uint64_t kEvents = 5'000;
constexpr uint64_t kBad = 8;  // channel_id; RightChannel's is another one

const Source& Ours() { return Sources()[1]; }

// The cases of contradict.ko.
struct Case {
  uint32_t what;
  uint32_t state;  // enum weft_kernel_stop
  const char* name;
};
constexpr Case kCases[] = {{1, WEFT_KERNEL_STOP_POSITION, "Position"},
                           {2, WEFT_KERNEL_STOP_COUNT, "Count"},
                           {3, WEFT_KERNEL_STOP_NESTING, "Nesting"},
                           {4, WEFT_KERNEL_STOP_IMAGE, "Image"},
                           {5, WEFT_KERNEL_STOP_COUNT, "CountAtTheEnd"}};

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

std::string Parameter(const char* name) {
  return std::string("/sys/module/contradict/parameters/") + name;
}

// contradict.ko, which is beside weft.ko.
class Contradictor {
 public:
  Contradictor() {
    const char* module = std::getenv("WEFT_MODULE");
    const std::string weft(module != nullptr ? module : "");
    const std::string path = weft.substr(0, weft.rfind('/') + 1) + "contradict.ko";
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    is_there_ = file && ::syscall(SYS_finit_module, file.get(), "", 0) == 0;
  }
  ~Contradictor() {
    if (is_there_) ::syscall(SYS_delete_module, "contradict", O_NONBLOCK);
  }
  Contradictor(const Contradictor&) = delete;
  Contradictor& operator=(const Contradictor&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  bool is_there_ = false;
};

// While it lives, this thread has its CPU for itself for most of each second. The kernel's workers
// on that CPU, which end the events of a stopped session, wait.
class Alone {
 public:
  Alone() {
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(Cpus() - 1, &last);
    ::sched_getaffinity(0, sizeof(before_), &before_);
    EXPECT_EQ(::sched_setaffinity(0, sizeof(last), &last), 0);
    const sched_param first{.sched_priority = 10};
    EXPECT_EQ(::sched_setscheduler(0, SCHED_FIFO, &first), 0);
  }
  ~Alone() {
    const sched_param any{};
    EXPECT_EQ(::sched_setscheduler(0, SCHED_OTHER, &any), 0);
    EXPECT_EQ(::sched_setaffinity(0, sizeof(before_), &before_), 0);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  cpu_set_t before_{};
};

weft_kernel_session_status StatusOf(const Recording& recording) {
  weft_kernel_session_status status{};
  status.size = sizeof(status);
  EXPECT_EQ(Control(recording.session.get(), WEFT_IOCTL_SESSION_STATUS, &status), 0);
  return status;
}

bool HasEnded(const Recording& recording) {
  weft_kernel_event_status status{};
  status.size = sizeof(status);
  EXPECT_EQ(Control(recording.event.get(), WEFT_IOCTL_EVENT_STATUS, &status), 0);
  return status.state == ESHUTDOWN;
}

// Counts the lines of the kernel's log that contain this text.
size_t InTheLog(const std::string& text) {
  const UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  size_t found = 0;
  char line[8192];
  for (;;) {
    const ssize_t got = ::read(log.get(), line, sizeof(line));
    if (got < 0 && errno == EPIPE) continue;  // some lines are gone
    if (got <= 0) return found;
    if (std::string(line, static_cast<size_t>(got)).find(text) != std::string::npos) found++;
  }
}

// The values of one recording, in their order: CPU by CPU they are read, and some came from another
// CPU.
class Values {
 public:
  Values(const Recording& recording, size_t field) : view_(recording.ring.get()), field_(field) {}

  const std::vector<uint64_t>& Read() {
    view_.DrainAll(
        [this](uint32_t, const SeenRecord& record) { values_.push_back(record.Field(field_)); });
    std::ranges::sort(values_);
    EXPECT_EQ(view_.problem(), "");
    EXPECT_EQ(view_.Committed(), values_.size());
    return values_;
  }
  // They are those from 0 on, up to `count`.
  void ExpectAll(uint64_t count) {
    Read();
    ASSERT_EQ(values_.size(), count);
    for (uint64_t i = 0; i < count; i++) ASSERT_EQ(values_[i], i);
  }
  [[nodiscard]] uint64_t Discarded() const { return view_.Discarded(); }
  [[nodiscard]] uint64_t Discarded(weft_discard_reason reason) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view_.rings(); i++) sum += view_.slot(i)->discarded[reason];
    return sum;
  }

 private:
  RingView view_;
  size_t field_;
  std::vector<uint64_t> values_;
};

class ContradictionTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ASSERT_TRUE(contradictor_.is_there()); }

  // Returns the recording that will be spoiled: its event has segments, or none.
  static Recording Spoiled() {
    weft_kernel_channel channel = RightChannel();
    channel.channel_id = kBad;
    return Record(GetParam().what == 4 ? UserEvent() : Ours().event(), channel);
  }
  static size_t FieldOfValue() { return GetParam().what == 4 ? 1 : 0; }

  // Emits all events, with one contradiction among them. Returns false if its session's events
  // ended before the last one.
  static bool Emit(const Recording& bad) {
    EXPECT_TRUE(Write(Parameter("channel"), std::to_string(kBad)));
    const std::string what = std::to_string(GetParam().what);
    const Alone alone;
    for (uint64_t value = 0; value < kEvents; value++) {
      EXPECT_TRUE(value != kArmedAt || Write(Parameter("what"), what));
      Ours().emit(value);
    }
    return !HasEnded(bad);
  }

  // Until it goes well: where this machine stood still, the workers had their turn.
  void Contradict() {
    do {
      logged_ = InTheLog(Line());
      bad_ = Spoiled();
      good_ = Record(Ours().event());
      ASSERT_TRUE(bad_.valid() && good_.valid());
      ASSERT_EQ(Switch(bad_.session.get(), 1), 0);
      ASSERT_EQ(Switch(good_.session.get(), 1), 0);
    } while (!Emit(bad_));
  }
  static std::string Line() {
    return "weft: a session stopped: internal contradiction " + std::to_string(GetParam().state);
  }

  Contradictor contradictor_;
  Recording bad_, good_;
  size_t logged_ = 0;  // lines of earlier sessions
};

TEST_P(ContradictionTest, EndsTheSessionAndCountsAllAndNothingElseNotices) {
  Contradict();
  Values spoiled(bad_, FieldOfValue()), whole(good_, 0);

  // The session's status reports the stop, and each of its events is recorded, whole, or counted.
  EXPECT_EQ(StatusOf(bad_).state, GetParam().state);
  EXPECT_EQ(StatusOf(bad_).contradictions, 1U);
  const uint64_t recorded = spoiled.Read().size();
  EXPECT_GE(recorded, kArmedAt);
  EXPECT_LT(recorded, kEvents);
  spoiled.ExpectAll(recorded);
  EXPECT_EQ(recorded + spoiled.Discarded(), kEvents);
  const uint64_t one = GetParam().what == 4 ? 1 : 0;
  EXPECT_EQ(spoiled.Discarded(WEFT_DISCARD_TOO_LARGE), one);
  EXPECT_EQ(spoiled.Discarded(WEFT_DISCARD_CONTENDED), kEvents - recorded - one);

  // Its events end: nothing is recorded nor counted any more, nothing new may be made.
  while (!HasEnded(bad_)) ::usleep(1'000);
  Ours().emit(kEvents);
  spoiled.ExpectAll(recorded);
  EXPECT_EQ(recorded + spoiled.Discarded(), kEvents);
  Event more = Ours().event();
  EXPECT_EQ(more.AddTo(bad_.ring.get()), -ESHUTDOWN);
  EXPECT_EQ(Switch(bad_.session.get(), 1), -ESHUTDOWN);
  EXPECT_EQ(Switch(bad_.session.get(), 0), 0);
  EXPECT_EQ(InTheLog(Line()), logged_ + 1);

  // The other session has all; so has one that is made now.
  whole.ExpectAll(kEvents + 1);
  EXPECT_EQ(whole.Discarded(), 0U);
  EXPECT_EQ(StatusOf(good_).state, static_cast<uint32_t>(WEFT_KERNEL_RUNS));
  const Recording next = Record(Ours().event());
  Values later(next, 0);
  ASSERT_EQ(Switch(next.session.get(), 1), 0);
  for (uint64_t value = 0; value < kArmedAt; value++) Ours().emit(value);
  later.ExpectAll(kArmedAt);
}

INSTANTIATE_TEST_SUITE_P(Each, ContradictionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::kmod
