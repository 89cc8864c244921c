// SPDX-License-Identifier: Apache-2.0
// See kernel_support.h.
#include "node-agent/agent/cluster/kernel_support.h"

#include <chrono>

#include "lib/base/background.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

void KernelSupport::Start(int64_t now_ns) {
  tried_ns_ = now_ns;
  if (!options_.is_on) {
    module_ = no_cgroups_ = {
        .is_known = true,
        .reason = "Off",
        .message = "kernel tracing is turned off on this node (chart value agent.kernel.mode)"};
    return;
  }
  if (auto cgroups = PodCgroups::Find()) {
    cgroups_ = std::make_unique<PodCgroups>(std::move(*cgroups));
  } else {
    const bool hidden = cgroups.error().code == ErrorCode::kPermission;
    no_cgroups_ = {.is_known = true,
                   .reason = hidden ? kernel::kNotPermitted : "CgroupV1",
                   .message = cgroups.error().message};
  }
  trying_ = InBackground(
      [host = host_, driver = options_.driver] { return kernel::PrepareDriver(host, driver); });
}

bool KernelSupport::Poll(int64_t now_ns, bool wanted) {
  if (!trying_.valid()) {
    const bool is_time = std::chrono::nanoseconds(now_ns - tried_ns_) >= kDriverRetry;
    if (options_.is_on && !module_.is_ready && wanted && is_time) Start(now_ns);
    return false;
  }
  if (!IsDone(trying_)) return false;
  const kernel::DriverState found = trying_.get();
  module_ = {.is_known = true,
             .is_ready = found.is_ready,
             .reason = found.reason,
             .message = found.message};
  return true;
}

}  // namespace weft::agent
