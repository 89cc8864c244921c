// SPDX-License-Identifier: Apache-2.0
// Counts what arrives of each pod of each Trace, second by second, for about the last minute. A
// relay that was started again begins anew: its rates are of what arrived since then.
// Thread-safety: all functions.
#ifndef WEFT_RELAY_RATES_TRACE_RATES_H_
#define WEFT_RELAY_RATES_TRACE_RATES_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace weft::relay_rates {

using Clock = std::chrono::steady_clock;

// Seconds that are remembered, beside the one that is not over yet.
inline constexpr std::size_t kSeconds = 60;
// Pods of all Traces. Each takes about 2 KiB, so all of them take 16 MiB: little beside the relay's
// memory limit in the chart (1 GiB). A pod that has sent nothing for kSeconds gives its place to
// a new one; while there is none, new pods are not counted.
inline constexpr std::size_t kMaxPods = 8192;

struct Counts {
  std::uint64_t events = 0;     // stored
  std::uint64_t bytes = 0;      // stored, of packets
  std::uint64_t discarded = 0;  // events that the node reports as never recorded
  std::uint64_t lost = 0;       // events that the node reports as lost on the way
  bool operator==(const Counts&) const = default;

  Counts& operator+=(const Counts& more) {
    events += more.events;
    bytes += more.bytes;
    discarded += more.discarded;
    lost += more.lost;
    return *this;
  }
};

struct PodRates {
  std::string pod;
  Counts total;                 // since the relay began
  std::vector<Counts> seconds;  // whole ones, the oldest first, up to the last one that is over
};

class TraceRates {
 public:
  explicit TraceRates(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

  // Counts what arrived now. `trace`: the Trace's folder, as store::TraceFolder names it.
  void Add(const std::string& trace, const std::string& pod, const Counts& more);

  // The pods of a Trace, by name, each with its last `seconds` seconds, at most kSeconds.
  [[nodiscard]] std::vector<PodRates> Of(const std::string& trace, std::size_t seconds) const;

 private:
  struct Pod {
    Counts total;
    // The second n is at n % size(), if it is one of the last ones up to `last`.
    std::array<Counts, kSeconds + 1> seconds;
    std::uint64_t last = 0;  // second of the last count

    void MoveTo(std::uint64_t second);
  };

  [[nodiscard]] std::uint64_t Second() const;
  // Makes room for one more pod. False: all have sent something lately.
  bool MakeRoom(std::uint64_t now);

  const std::function<Clock::time_point()> now_;
  mutable std::mutex mutex_;
  std::size_t count_ = 0;  // of pods
  std::map<std::string, std::map<std::string, Pod>> traces_;
};

}  // namespace weft::relay_rates

#endif  // WEFT_RELAY_RATES_TRACE_RATES_H_
