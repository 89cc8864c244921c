// SPDX-License-Identifier: GPL-2.0-only
// See load.h.
#include "kmod/tests/load.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr uint64_t kLongFactor = 10;

// The tracepoint itimer_state is in setitimer of the timers of CPU time only, which nothing uses
// here.
void SetTimer(uint64_t value) {
  itimerval timer{};
  // No process uses up this much CPU time, so the timer never fires.
  timer.it_value.tv_sec = static_cast<time_t>(value);
  ::setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

void CallWithArgument(uint64_t value) { ::syscall(SYS_sched_get_priority_max, 1, value); }

// struct itimerspec64: it_interval, then it_value, each of seconds and nanoseconds.
constexpr int32_t kOfSeconds = 16;
// struct pt_regs, which functions of system calls take: si, a call's second argument.
constexpr int32_t kOfSecond = 104;
constexpr const char* kFunction = "__x64_sys_sched_get_priority_max";

}  // namespace

const std::vector<Source>& Sources() {
  static const std::vector<Source> sources = {
      {"tracepoint", WEFT_KERNEL_TRACEPOINTS,
       [] {
         Event event = Event::Tracepoint("itimer_state");
         event.Load("seconds", 1, kOfSeconds);
         return event;
       },
       SetTimer},
      {"syscall", WEFT_KERNEL_SYSCALLS,
       [] {
         Event event = Event::SyscallEntry(SYS_sched_get_priority_max);
         event.Field("second", 1).Field("first", 0);
         return event;
       },
       CallWithArgument},
      {"kprobe", WEFT_KERNEL_KPROBES,
       [] {
         Event event = Event::Kprobe(kFunction);
         event.Load("value", 0, kOfSecond, 0);
         return event;
       },
       CallWithArgument, 2},
      {"kretprobe", WEFT_KERNEL_KPROBES,
       [] {
         Event event = Event::Kretprobe(kFunction);
         event.Load("value", 0, kOfSecond, 0);
         return event;
       },
       CallWithArgument, 4},
      {"uprobe", WEFT_KERNEL_UPROBES,
       [] {
         PlaceInFile place = Locate(reinterpret_cast<const void*>(&WeftTarget));
         Event event = Event::Uprobe(std::move(place.file), place.offset);
         event.Field("value", 0);
         return event;
       },
       [](uint64_t value) { WeftTarget(value); }, 8},
  };
  return sources;
}

uint32_t Features() {
  weft_kernel_abi abi{};
  abi.size = sizeof(abi);
  const UniqueFd device = OpenDevice();
  return Control(device.get(), WEFT_IOCTL_ABI, &abi) == 0 ? abi.features : 0;
}

long Cpus() { return ::sysconf(_SC_NPROCESSORS_ONLN); }

bool IsLong() {
  const char* text = std::getenv("WEFT_LONG");
  return text != nullptr && std::string(text) == "1";
}

uint64_t Scaled(uint64_t count) { return IsLong() ? count * kLongFactor : count; }

Storm::Storm(const Source& source, unsigned threads, uint64_t count) : running_(threads) {
  for (unsigned t = 0; t < threads; t++) {
    threads_.emplace_back([this, emit = source.emit, t, count] {
      for (uint64_t n = 0; n < count; n++) emit((uint64_t{t} << 32) | n);
      running_--;
    });
  }
}

void Storm::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

OnCpu::OnCpu(long cpu) {
  EXPECT_EQ(::sched_getaffinity(0, sizeof(before_), &before_), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  EXPECT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
}

OnCpu::~OnCpu() { EXPECT_EQ(::sched_setaffinity(0, sizeof(before_), &before_), 0); }

Noise::Noise(void (*emit)(uint64_t), unsigned threads) {
  for (unsigned t = 0; t < threads; t++) {
    threads_.emplace_back([this, emit] {
      for (uint64_t n = 1; !stop_; n++) emit(n);
    });
  }
}

Noise::~Noise() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace weft::kmod
