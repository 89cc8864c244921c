// SPDX-License-Identifier: Apache-2.0
// See follow.h.
#include "cli/kubectl/follow.h"

#include <thread>

#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLookEvery{1};
// A relay that was restarted is back by then.
constexpr std::chrono::seconds kPatience{60};

bool MayPass(const Error& error) {
  return error.code == ErrorCode::kIo || error.code == ErrorCode::kTimeout;
}

// Tells whether an error that may pass has lasted too long.
class Outage {
 public:
  void Ended() { is_out_ = false; }
  bool IsTooLong(const Error& error) {
    if (!MayPass(error)) return true;
    if (!is_out_) {
      is_out_ = true;
      since_ = Clock::now();
      std::fprintf(stderr, "kubectl weft: %s; trying again\n", Printable(error.message).c_str());
    }
    return Clock::now() - since_ > kPatience;
  }

 private:
  bool is_out_ = false;
  Clock::time_point since_;
};

// Returns whether more may come: while the Trace is not over, always.
Result<bool> RoundOf(Followed& events) {
  WEFT_TRY(events.Round());
  return true;
}

// Whether the Trace is over. An error that may pass says no.
Result<bool> IsTraceOver(const Connection& connection, const std::string& name, Followed& events) {
  const auto trace = GetTrace(connection, name);
  if (trace) {
    events.Look(*trace);
    return IsOver(trace->status.phase);
  }
  if (trace.error().code == ErrorCode::kNotFound) return true;
  if (MayPass(trace.error())) return false;
  return std::unexpected(trace.error());
}

}  // namespace

bool Pause(Interrupts& interrupts, bool heeds_interrupts, std::chrono::milliseconds time) {
  if (heeds_interrupts) return interrupts.Sleep(time);
  std::this_thread::sleep_for(time);
  return false;
}

Result<FollowEnd> Follow(const Connection& connection, const std::string& trace, Followed& events,
                         Interrupts& interrupts, bool heeds_interrupts) {
  Outage outage;
  Clock::time_point looked;
  bool is_over = false;
  for (;;) {
    const auto began = Clock::now();
    if (began - looked >= kLookEvery) {
      looked = began;
      WEFT_ASSIGN(is_over, IsTraceOver(connection, trace, events));
    }
    const Result<bool> more = is_over ? events.Finish() : RoundOf(events);
    if (!more && outage.IsTooLong(more.error())) return std::unexpected(more.error());
    if (more && !*more) return FollowEnd::kOver;
    if (more) outage.Ended();
    const auto left = events.pause() -
                      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    if (Pause(interrupts, heeds_interrupts, std::max(left, std::chrono::milliseconds(1))))
      return FollowEnd::kInterrupted;
  }
}

}  // namespace weft::kubectl
