// SPDX-License-Identifier: Apache-2.0
// See direct_pace.h.
#include "lib/store/direct_pace.h"

#include <algorithm>
#include <utility>

namespace weft::store {

void DirectPace::WroteDirectly(Time begin, Time end, size_t bytes) {
  const auto smooth = [bytes](std::chrono::nanoseconds& per_mib, std::chrono::nanoseconds took) {
    const std::chrono::nanoseconds now = took * 1024 / (bytes / 1024);
    per_mib = (per_mib * 7 + std::min(now, 2 * kSlowDirect)) / 8;
  };
  // No earlier write exists from which to measure the first one's arrival time.
  const bool first = std::exchange(direct_bytes_, direct_bytes_ + bytes) == 0;
  const Time last_end = std::exchange(last_end_, end);
  if (first) return;
  smooth(write_per_mib_, end - begin);
  smooth(flow_per_mib_, end - last_end);
  if (write_per_mib_ > kSlowDirect) LeaveToCache();
}

void DirectPace::WroteToCache(size_t bytes) {
  left_to_cache_ -= std::min<uint64_t>(left_to_cache_, bytes);
}

void DirectPace::FallBehind() {
  if (write_per_mib_ > flow_per_mib_ / 2) LeaveToCache();
}

void DirectPace::LeaveToCache() {
  if (left_to_cache_ > 0) return;
  const bool kept_up = direct_bytes_ >= kKeptUp;
  last_left_ = kept_up ? kLeftToCache : std::clamp(2 * last_left_, kLeftToCache, kMaxLeftToCache);
  left_to_cache_ = last_left_;
  direct_bytes_ = 0;
}

}  // namespace weft::store
