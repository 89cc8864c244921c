// SPDX-License-Identifier: Apache-2.0
// Work at processes that may take long, or never end: each in a thread of its own, which is left
// behind when patience is over (docs/adr/0068). Such a thread owns all that it uses.
//
// Thread-safety: one thread calls all methods; End may come from any thread.
#ifndef WEFT_LIB_BASE_PATIENT_WORK_H_
#define WEFT_LIB_BASE_PATIENT_WORK_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/background.h"

namespace weft {

// `Outcome`: what the work returns. `About`: what the caller has to know of work that ends late.
template <typename Outcome, typename About>
class PatientWork {
 public:
  struct Done {
    int32_t pid = 0;
    About about;
    Outcome outcome;
  };

  explicit PatientWork(std::chrono::milliseconds patience) : patience_(patience) {}

  // Work that is under way, and all that follows, is left behind at once.
  void End() { ends_ = true; }

  // Does `call` at a process for which no work is left behind. Returns none if its thread was left
  // behind.
  template <typename Call>
  std::optional<Outcome> Do(int32_t pid, About about, Call call) {
    auto outcome = InBackground(std::move(call));
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (outcome.wait_for(kEndInterval) != std::future_status::ready) {
      if (!ends_ && std::chrono::steady_clock::now() < end) continue;
      late_.insert_or_assign(pid, Late{.about = std::move(about), .outcome = std::move(outcome)});
      return std::nullopt;
    }
    return outcome.get();
  }

  [[nodiscard]] bool has_late() const { return !late_.empty(); }
  [[nodiscard]] bool IsLate(int32_t pid) const { return late_.contains(pid); }
  // Is there work that was left behind for which `is_meant` holds?
  template <typename IsMeant>
  [[nodiscard]] bool AnyLate(const IsMeant& is_meant) const {
    return std::ranges::any_of(late_,
                               [&](const auto& entry) { return is_meant(entry.second.about); });
  }
  // Returns work that was left behind and has ended after all.
  std::vector<Done> TakeDone() {
    std::vector<Done> done;
    for (auto& [pid, late] : late_)
      if (IsDone(late.outcome)) done.push_back({pid, std::move(late.about), late.outcome.get()});
    for (const Done& one : done) late_.erase(one.pid);
    return done;
  }

 private:
  struct Late {
    About about;
    std::future<Outcome> outcome;
  };
  // How soon End is noticed.
  static constexpr std::chrono::milliseconds kEndInterval{20};

  const std::chrono::milliseconds patience_;
  std::atomic<bool> ends_{false};
  std::map<int32_t, Late> late_;  // by process
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_PATIENT_WORK_H_
