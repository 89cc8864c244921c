// SPDX-License-Identifier: Apache-2.0
// Decides whether a trace's large packets go to the disk directly or through the page cache. Direct
// writes cost half the CPU time, but wait for the disk. If the disk is slower than the events, or
// has a long slow moment, packets go through the page cache for a while (docs/adr/0023). It is told
// all times and reads no clock. Thread-safety: plain values.
#ifndef WEFT_RELAY_STORE_DIRECT_PACE_H_
#define WEFT_RELAY_STORE_DIRECT_PACE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft::store {

// Above this smoothed time per MiB, the page cache is the better buffer.
inline constexpr std::chrono::nanoseconds kSlowDirect = std::chrono::milliseconds(20);
// The page cache gets this many bytes before a direct write is tried again; twice as many each
// time, up to kMaxLeftToCache, unless kKeptUp were written directly in between.
inline constexpr uint64_t kLeftToCache = uint64_t{64} << 20;
inline constexpr uint64_t kMaxLeftToCache = uint64_t{4} << 30;
inline constexpr uint64_t kKeptUp = uint64_t{1} << 30;

class DirectPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // May the next write be direct?
  [[nodiscard]] bool direct() const { return left_to_cache_ == 0; }

  // Notes a successful direct write of `bytes`, a KiB or more.
  void WroteDirectly(Time begin, Time end, size_t bytes);
  // Notes that so many bytes went through the page cache.
  void WroteToCache(size_t bytes);
  // Reports that the writer does not keep up with the events. The disk is the cause if direct
  // writes took more than half of the time.
  void FallBehind();

 private:
  void LeaveToCache();

  // Smoothed over the last writes; a write counts as twice kSlowDirect at most.
  std::chrono::nanoseconds write_per_mib_{};  // that a MiB took
  std::chrono::nanoseconds flow_per_mib_{};   // in which a MiB came
  Time last_end_{};
  uint64_t left_to_cache_ = 0;  // bytes
  uint64_t last_left_ = 0;      // what that was when it began
  uint64_t direct_bytes_ = 0;   // since its end
};

}  // namespace weft::store

#endif  // WEFT_RELAY_STORE_DIRECT_PACE_H_
