// SPDX-License-Identifier: Apache-2.0
// The queue of work. It is short (Traces, namespaces), so the next one is looked for.
#include "controller/work.h"

#include <algorithm>

namespace weft::controller {

void WorkQueue::Add(const Work& work, std::chrono::milliseconds delay) {
  const Clock::time_point when = Clock::now() + delay;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [at, is_new] = due_.emplace(work, when);
  if (!is_new) at->second = std::min(at->second, when);
  ++version_;
  changed_.notify_one();
}

std::optional<Work> WorkQueue::Take(const std::stop_token& stop,
                                    std::chrono::milliseconds patience) {
  const Clock::time_point give_up = Clock::now() + patience;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto next =
        std::ranges::min_element(due_, {}, [](const auto& entry) { return entry.second; });
    const Clock::time_point now = Clock::now();
    if (stop.stop_requested()) return std::nullopt;
    if (next != due_.end() && next->second <= now) {
      Work work = next->first;
      due_.erase(next);
      return work;
    }
    if (now >= give_up) return std::nullopt;
    const Clock::time_point until = next == due_.end() ? give_up : std::min(give_up, next->second);
    changed_.wait_until(lock, stop, until, [this, seen = version_] { return version_ != seen; });
  }
}

}  // namespace weft::controller
