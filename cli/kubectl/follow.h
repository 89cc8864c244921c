// SPDX-License-Identifier: Apache-2.0
// Follows a Trace to its end: in rounds, and looks at its state now and then.
#ifndef WEFT_CLI_KUBECTL_FOLLOW_H_
#define WEFT_CLI_KUBECTL_FOLLOW_H_

#include <chrono>
#include <string>

#include "cli/kubectl/connection.h"
#include "cli/kubectl/interrupts.h"
#include "lib/api/trace.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// What is done with a Trace's events.
class Followed {
 public:
  virtual ~Followed() = default;
  // Takes what is new. kClosed: the reader of the events is gone.
  virtual Status Round() = 0;
  // Takes some of the rest: the Trace is over. Returns whether there is more.
  virtual Result<bool> Finish() = 0;
  // The Trace's state, about once in a second.
  virtual void Look(const api::Trace& /*trace*/) {}
  // How long to wait until the next round.
  [[nodiscard]] virtual std::chrono::milliseconds pause() const = 0;
};

enum class FollowEnd {
  kOver,         // the Trace has ended, or was deleted; all of its events were shown
  kInterrupted,  // ^C
};

// Returns when the Trace is over. `heeds_interrupts`: or at ^C. A relay that is away for less than
// a minute is waited for.
Result<FollowEnd> Follow(const Connection& connection, const std::string& trace, Followed& events,
                         Interrupts& interrupts, bool heeds_interrupts);

// Waits for `time`; true if ^C came and is heeded.
bool Pause(Interrupts& interrupts, bool heeds_interrupts, std::chrono::milliseconds time);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_FOLLOW_H_
