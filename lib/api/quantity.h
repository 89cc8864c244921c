// SPDX-License-Identifier: Apache-2.0
// Parses Kubernetes' two notations for numbers with units: quantities ("512Ki") and Go's durations
// ("1h30m"). Values are exact: a value that does not fit, or would have to be rounded, is an error.
// Thread-safety: pure functions.
#ifndef WEFT_LIB_API_QUANTITY_H_
#define WEFT_LIB_API_QUANTITY_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::api {

// Parses a whole number of bytes: digits, an optional fraction, then Ki Mi Gi Ti Pi Ei, k M G T P
// E, m u n (apimachinery's suffixes), or an exponent (1e3). Its error is kInvalid, with a message
// that does not repeat the text.
Result<std::uint64_t> ParseQuantity(std::string_view text);

// Returns the shortest exact form with a binary suffix: 524288 is "512Ki", 1000 is "1000".
std::string FormatQuantity(std::uint64_t value);

// Go's time.ParseDuration; negative ones are parsed too. Errors: kInvalid.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// Exact, units from h to ns, zero parts left out: "1h30m", "1s500ms", "0s".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace weft::api

#endif  // WEFT_LIB_API_QUANTITY_H_
