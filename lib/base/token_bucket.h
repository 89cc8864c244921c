// SPDX-License-Identifier: Apache-2.0
// A token bucket, and one for each of many keys. Not thread-safe: their owner has a lock.
#ifndef WEFT_LIB_BASE_TOKEN_BUCKET_H_
#define WEFT_LIB_BASE_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace weft {

class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;

  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), level_(burst) {}

  // False: the rate is exceeded.
  bool Take(Clock::time_point now) {
    Fill(now);
    if (level_ < 1) return false;
    level_ -= 1;
    return true;
  }
  // Whether it holds as much as a new one.
  bool IsFull(Clock::time_point now) {
    Fill(now);
    return level_ >= burst_;
  }

 private:
  void Fill(Clock::time_point now) {
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    level_ = std::min(burst_, level_ + std::max(0.0, passed.count()) * rate_);
  }

  double rate_;  // a second
  double burst_;
  double level_;
  Clock::time_point last_{};
};

// Keys are foreign: at most `most` of them are remembered, and when there are more, a new one is
// refused until a bucket of another is full again.
class TokenBuckets {
 public:
  TokenBuckets(double rate, double burst, std::size_t most)
      : rate_(rate), burst_(burst), most_(most) {}

  bool Take(const std::string& key, TokenBucket::Clock::time_point now) {
    auto found = buckets_.find(key);
    if (found == buckets_.end()) {
      if (buckets_.size() >= most_) {
        for (auto at = buckets_.begin(); at != buckets_.end();) {
          at = at->second.IsFull(now) ? buckets_.erase(at) : std::next(at);
        }
      }
      if (buckets_.size() >= most_) return false;
      found = buckets_.emplace(key, TokenBucket(rate_, burst_)).first;
    }
    return found->second.Take(now);
  }

 private:
  double rate_;
  double burst_;
  std::size_t most_;
  std::map<std::string, TokenBucket> buckets_;
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_TOKEN_BUCKET_H_
