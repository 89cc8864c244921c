// SPDX-License-Identifier: Apache-2.0
// Limits how many lines a log gets about what others do, so that one of them can neither fill the
// disk nor rotate the lines about others away. Not thread-safe.
#ifndef WEFT_LIB_BASE_LOG_RATE_H_
#define WEFT_LIB_BASE_LOG_RATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/token_bucket.h"

namespace weft {

class LogRate {
 public:
  using Clock = TokenBucket::Clock;

  // For each key: `burst` lines at once, then `rate` a second. `most`: as of TokenBuckets.
  LogRate(double rate, double burst, std::size_t most) : buckets_(rate, burst, most) {}

  // Returns what the line about `key` ends with: nothing, or the number of lines that were left out
  // before it. std::nullopt: this line is to be left out.
  std::optional<std::string> Take(const std::string& key, Clock::time_point now) {
    if (!buckets_.Take(key, now)) {
      ++left_out_;
      return std::nullopt;
    }
    const uint64_t left_out = std::exchange(left_out_, 0);
    if (left_out == 0) return "";
    return " (" + std::to_string(left_out) + " lines before this one left out)";
  }

 private:
  TokenBuckets buckets_;
  uint64_t left_out_ = 0;  // of all keys
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_LOG_RATE_H_
