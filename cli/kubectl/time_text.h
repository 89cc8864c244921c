// SPDX-License-Identifier: Apache-2.0
// Times of flags: "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00", or how long ago, "5m".
// Thread-safety: pure functions.
#ifndef WEFT_CLI_KUBECTL_TIME_TEXT_H_
#define WEFT_CLI_KUBECTL_TIME_TEXT_H_

#include <cstdint>
#include <string_view>

#include "lib/base/result.h"
#include "lib/kube/time.h"

namespace weft::kubectl {

// Nanoseconds since 1970. kInvalid: it is none of these forms.
Result<std::uint64_t> ParseTimeText(std::string_view text, kube::WallTime now);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_TIME_TEXT_H_
