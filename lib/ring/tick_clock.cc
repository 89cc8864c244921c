// SPDX-License-Identifier: Apache-2.0
// See tick_clock.h.
#include "lib/ring/tick_clock.h"

#include <algorithm>

#include "lib/abi/ring.h"
#include "lib/base/host_clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::ring {
namespace {

constexpr uint64_t kFirstMeasureNs = 5'000'000;
constexpr uint64_t kMinCalibrationNs = 100'000'000;  // tens of ns of error are then below 1 ppm
constexpr int kSampleTries = 16;
constexpr int64_t kMaxSlewPerMillion = 500;  // as fast as NTP corrects the kernel's own clock
constexpr uint64_t kLeadNs = 1'000'000'000;

uint64_t CycleCounter() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return HostMonotonicNs();
#endif
}

int64_t Rate(const TickSource::Pair& from, const TickSource::Pair& to) {
  const uint64_t ticks = std::max<uint64_t>(to.ticks - from.ticks, 1);
  const uint64_t ns = to.mono_ns - from.mono_ns;
  return std::max<int64_t>(static_cast<int64_t>((static_cast<unsigned __int128>(ns) << 32) / ticks),
                           1);
}

}  // namespace

uint64_t MachineTicks::Ticks() {
  return clock_ == WEFT_CLOCK_TSC ? CycleCounter() : HostMonotonicNs();
}

TickSource::Pair MachineTicks::Sample() {
  if (clock_ != WEFT_CLOCK_TSC) {
    const uint64_t now = HostMonotonicNs();
    return {now, now};
  }
  Pair best;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < kSampleTries; i++) {
    const uint64_t before = CycleCounter();
    const uint64_t ns = HostMonotonicNs();
    const uint64_t after = CycleCounter();
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {before + shortest / 2, ns};
  }
  return best;
}

TickClock::TickClock(TickSource& source, int64_t offset_ns)
    : source_(&source), last_(source.Sample()), offset_ns_(offset_ns) {
  TickSource::Pair pair = source.Sample();
  if (pair.ticks == pair.mono_ns) {
    line_.ns_per_tick = int64_t{1} << 32;
  } else {
    while (pair.mono_ns - last_.mono_ns < kFirstMeasureNs) pair = source.Sample();
    line_.ns_per_tick = Rate(last_, pair);
  }
  last_ = pair;
  line_.origin_ticks = pair.ticks;
  line_.origin_ns = pair.mono_ns + static_cast<uint64_t>(offset_ns);
}

void TickClock::Calibrate() {
  const TickSource::Pair pair = source_->Sample();
  if (pair.ticks == pair.mono_ns || pair.mono_ns - last_.mono_ns < kMinCalibrationNs) return;
  const int64_t rate = Rate(last_, pair);
  last_ = pair;
  const uint64_t here = ToNs(pair.ticks);
  const uint64_t truth = pair.mono_ns + static_cast<uint64_t>(offset_ns_);
  // The distance until the lines meet, one second on. It is bounded so that the clock slews and
  // does not jump.
  const auto behind = static_cast<int64_t>(truth - here);
  const auto limit = static_cast<int64_t>(kLeadNs / 1'000'000) * kMaxSlewPerMillion;
  const int64_t slew = std::clamp(behind, -limit, limit);
  line_.origin_ticks = pair.ticks;
  line_.origin_ns = here;
  line_.ns_per_tick = rate + static_cast<int64_t>(static_cast<__int128>(rate) * slew /
                                                  static_cast<int64_t>(kLeadNs));
}

}  // namespace weft::ring
