// SPDX-License-Identifier: Apache-2.0
// Converts times of the rings' clock (TSC ticks or CLOCK_MONOTONIC) to nanoseconds of one clock
// that all readers share: the host's CLOCK_MONOTONIC plus an offset that the session fixes once,
// so that a stepped wall clock moves nothing. One thread owns a TickClock.
//
// For the TSC, the clock is a line through measured pairs (ticks, CLOCK_MONOTONIC). Calibrate()
// replaces the line about once a second. The new line begins where the old one is, and leads to
// where CLOCK_MONOTONIC will be one second later; its slope is within 500 ppm of the rate measured
// since the last calibration. Time therefore never goes back, and never jumps. Times before the
// last calibration are converted with the newest line. The error of a pair is the time between the
// two reads around it, tens of nanoseconds; the best of several tries is taken.
#ifndef WEFT_LIB_RING_TICK_CLOCK_H_
#define WEFT_LIB_RING_TICK_CLOCK_H_

#include <cstdint>

namespace weft::ring {

// The source of time; a test has its own.
class TickSource {
 public:
  virtual ~TickSource() = default;
  struct Pair {
    uint64_t ticks = 0;
    uint64_t mono_ns = 0;
  };
  virtual uint64_t Ticks() = 0;
  virtual Pair Sample() = 0;
};

// The machine's. `clock` is enum weft_clock_id; where TSC does not exist, CLOCK_MONOTONIC.
class MachineTicks : public TickSource {
 public:
  explicit MachineTicks(uint32_t clock) : clock_(clock) {}
  uint64_t Ticks() override;
  Pair Sample() override;

 private:
  uint32_t clock_;
};

class TickClock {
 public:
  // Measures the rate for a few milliseconds (TSC). `offset_ns` is added to every time.
  TickClock(TickSource& source, int64_t offset_ns);

  // Call it about once a second, between records. If less than 100 ms have passed, it does nothing.
  void Calibrate();

  // The line that converts, until the next Calibrate.
  struct Line {
    uint64_t origin_ticks = 0;
    uint64_t origin_ns = 0;
    int64_t ns_per_tick = 0;  // 32.32 fixed point

    [[nodiscard]] uint64_t ToNs(uint64_t ticks) const {
      // The difference is signed: records from before the origin are as valid as those after it.
      const auto delta = static_cast<__int128>(static_cast<int64_t>(ticks - origin_ticks));
      return origin_ns + static_cast<uint64_t>(static_cast<int64_t>((delta * ns_per_tick) >> 32));
    }
  };
  [[nodiscard]] const Line& line() const { return line_; }

  [[nodiscard]] uint64_t Now() { return source_->Ticks(); }
  [[nodiscard]] uint64_t ToNs(uint64_t ticks) const { return line_.ToNs(ticks); }
  // Returns the ticks in `ns` nanoseconds, rounded down.
  [[nodiscard]] uint64_t TicksIn(uint64_t ns) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) /
                                 static_cast<unsigned __int128>(line_.ns_per_tick));
  }

 private:
  TickSource* source_;
  TickSource::Pair last_;
  int64_t offset_ns_;
  Line line_;
};

}  // namespace weft::ring

#endif  // WEFT_LIB_RING_TICK_CLOCK_H_
