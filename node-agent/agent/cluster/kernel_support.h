// SPDX-License-Identifier: Apache-2.0
// Decides whether this node can record its kernel, for its pods and as a whole; for pods it needs
// cgroup v2, too. A thread of its own makes weft.ko ready when the agent starts. If that failed,
// it tries again from time to time while a Trace needs the kernel. The loop's thread owns the
// object. The other thread runs only PrepareDriver, and the loop does not wait for it: an agent
// that ends does so at once, and a build that is under way ends with it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_SUPPORT_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_SUPPORT_H_

#include <future>
#include <memory>
#include <string>

#include "node-agent/agent/cluster/pod_cgroups.h"
#include "node-agent/kernel/driver.h"

namespace weft::agent {

struct KernelOptions {
  bool is_on = false;
  kernel::DriverOptions driver;
};

// For reports. Not known: it is being found out.
struct KernelState {
  bool is_known = false;
  bool is_ready = false;
  std::string reason = "Preparing";
  std::string message;
};

class KernelSupport {
 public:
  KernelSupport(KernelOptions options, kernel::Host host)
      : options_(std::move(options)), host_(std::move(host)) {}

  void Start(int64_t now_ns);
  // Whether the state is another one now. `wanted`: a Trace asks for it.
  bool Poll(int64_t now_ns, bool wanted);

  [[nodiscard]] bool is_on() const { return options_.is_on; }
  // Whether the kernel can be recorded for pods, or for the node as a whole.
  [[nodiscard]] const KernelState& state(bool cluster_wide = false) const {
    return cluster_wide || has_cgroups() ? module_ : no_cgroups_;
  }
  // Known from Start on, whatever becomes of the module.
  [[nodiscard]] bool has_cgroups() const { return cgroups_ != nullptr; }
  [[nodiscard]] PodCgroups& cgroups() { return *cgroups_; }

 private:
  const KernelOptions options_;
  const kernel::Host host_;
  KernelState module_;
  KernelState no_cgroups_;  // why there are none
  std::unique_ptr<PodCgroups> cgroups_;
  int64_t tried_ns_ = 0;
  std::future<kernel::DriverState> trying_;  // of a promise: its destructor does not wait
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_SUPPORT_H_
