// SPDX-License-Identifier: Apache-2.0
// Follows a Trace to its end: shows its events, and looks at its state now and then.
#ifndef WEFT_CLI_KUBECTL_FOLLOW_H_
#define WEFT_CLI_KUBECTL_FOLLOW_H_

#include <string>

#include "cli/kubectl/connection.h"
#include "cli/kubectl/interrupts.h"
#include "cli/kubectl/live_view.h"
#include "lib/base/result.h"

namespace weft::kubectl {

enum class FollowEnd {
  kOver,         // the Trace has ended, or was deleted; all of its events were shown
  kInterrupted,  // ^C
};

// Returns when the Trace is over. `heeds_interrupts`: or at ^C. A relay that is away for less than
// a minute is waited for.
Result<FollowEnd> Follow(const Connection& connection, const std::string& trace, LiveView& view,
                         Interrupts& interrupts, bool heeds_interrupts);

// Waits for `time`; true if ^C came and is heeded.
bool Pause(Interrupts& interrupts, bool heeds_interrupts, std::chrono::milliseconds time);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_FOLLOW_H_
