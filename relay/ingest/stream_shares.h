// SPDX-License-Identifier: Apache-2.0
// Shares out the relay's sessions, and its open files, of which each stream has one, between
// namespaces, so that one namespace cannot take all. Used by the server's thread.
#ifndef WEFT_RELAY_INGEST_STREAM_SHARES_H_
#define WEFT_RELAY_INGEST_STREAM_SHARES_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "lib/base/result.h"
#include "relay/ingest/limits.h"

namespace weft::ingest {

// Returns whether one more session may be welcomed of a namespace that has `of_namespace` of all
// `all` sessions. A namespace gets at most as many as it leaves free: half of them if it is alone.
inline Status CheckSessionShare(const std::string& kubernetes_namespace, size_t of_namespace,
                                size_t all) {
  if (all < kMaxSessions && of_namespace < kMaxSessions - all) return {};
  if (all >= kMaxSessions) {
    return Fail(ErrorCode::kLimit,
                "the relay has " + std::to_string(all) +
                    " sessions, as many as it may have, one for each node and Trace: delete Traces "
                    "that are not needed");
  }
  return Fail(ErrorCode::kLimit,
              "the namespace " + kubernetes_namespace + " has " + std::to_string(of_namespace) +
                  " sessions at the relay, one for each node and Trace, and " +
                  std::to_string(kMaxSessions - all) +
                  " are left for all others: a namespace may not have more than it leaves: delete "
                  "Traces that are not needed");
}

class StreamShares {
 public:
  // `files`: that the process may have open.
  explicit StreamShares(size_t files)
      : most_(std::min(kMaxOpenStreams, files) / 4 * 3), most_of_one_(most_ / 3) {}

  // A session of this namespace has `now` open streams instead of `before`. False: the namespace,
  // or all together, have more than their share; the caller then ends the session.
  [[nodiscard]] bool Change(const std::string& kubernetes_namespace, size_t before, size_t now) {
    if (before == now) return true;
    size_t& share = shares_[kubernetes_namespace];
    share += now - before;
    total_ += now - before;
    const bool fits = now < before || (share <= most_of_one_ && total_ <= most_);
    if (share == 0) shares_.erase(kubernetes_namespace);
    return fits;
  }

 private:
  const size_t most_;
  const size_t most_of_one_;
  std::map<std::string, size_t> shares_;
  size_t total_ = 0;
};

// Files that this process may have open.
inline size_t FileLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_cur) : 1024;
}

}  // namespace weft::ingest

#endif  // WEFT_RELAY_INGEST_STREAM_SHARES_H_
