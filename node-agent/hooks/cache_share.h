// SPDX-License-Identifier: Apache-2.0
// Shares out the memory in which the caches of this process remember what files have, so that the
// files of one container cannot take all. Thread-safety: several shares may be used at once, each
// by one thread.
#ifndef WEFT_NODE_AGENT_HOOKS_CACHE_SHARE_H_
#define WEFT_NODE_AGENT_HOOKS_CACHE_SHARE_H_

#include <cstddef>
#include <mutex>

#include "node-agent/hooks/limits.h"

namespace weft::hooks {

class CacheShare {
 public:
  CacheShare() = default;
  CacheShare(const CacheShare&) = delete;
  CacheShare& operator=(const CacheShare&) = delete;
  ~CacheShare() { (void)Resize(0); }

  // Returns whether the cache may hold so many bytes, which then count. A cache grows to at most as
  // much as it leaves free: half of kMaxAllCachedBytes if it is alone.
  [[nodiscard]] bool Resize(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const size_t others = all_ - mine_;
    if (bytes > mine_ && bytes > (kMaxAllCachedBytes - others) / 2) return false;
    all_ = others + bytes;
    mine_ = bytes;
    return true;
  }

 private:
  static inline std::mutex mutex_;
  static inline size_t all_ = 0;  // of all shares
  size_t mine_ = 0;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_CACHE_SHARE_H_
