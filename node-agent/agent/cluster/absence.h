// SPDX-License-Identifier: Apache-2.0
// Tells how long no agent was on this node before the present one: programs that began and ended
// then are in no count, so the Traces say when that was. The time of a file's last change is when
// an agent was there last. Not thread-safe.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_ABSENCE_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_ABSENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/result.h"
#include "lib/kube/time.h"

namespace weft::agent {

class Absence {
 public:
  // `path`: the file, which outlives agents; made with the first stamp.
  explicit Absence(std::string path) : path_(std::move(path)) {}

  // Returns when an agent was there last, if that is longer ago than kAbsence. Nothing: there was
  // one until now, or never.
  [[nodiscard]] std::optional<kube::WallTime> Since(kube::WallTime now) const;
  // An agent is here; costs a system call every kPresenceInterval. `now_ns`: CLOCK_MONOTONIC.
  Status Stamp(int64_t now_ns);

 private:
  std::string path_;
  int64_t stamped_ns_ = 0;
};

// "2026-01-02T03:04:05Z to 2026-01-02T03:05:00Z"
std::string DescribeSpan(kube::WallTime from, kube::WallTime until);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_ABSENCE_H_
