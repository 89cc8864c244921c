// SPDX-License-Identifier: Apache-2.0
// See absence.h.
#include "node-agent/agent/cluster/absence.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>

#include "lib/base/unique_fd.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

std::optional<kube::WallTime> Absence::Since(kube::WallTime now) const {
  struct stat status{};
  if (stat(path_.c_str(), &status) != 0) return std::nullopt;
  const kube::WallTime seen = std::chrono::system_clock::from_time_t(status.st_mtim.tv_sec);
  if (now - seen <= kAbsence) return std::nullopt;
  return seen;
}

Status Absence::Stamp(int64_t now_ns) {
  if (stamped_ns_ != 0 && std::chrono::nanoseconds(now_ns - stamped_ns_) < kPresenceInterval)
    return {};
  stamped_ns_ = now_ns;
  const UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || futimens(fd.get(), nullptr) != 0) return FailErrno(path_);
  return {};
}

std::string DescribeSpan(kube::WallTime from, kube::WallTime until) {
  return kube::FormatTime(from) + " to " + kube::FormatTime(until);
}

}  // namespace weft::agent
