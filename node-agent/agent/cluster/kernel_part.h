// SPDX-License-Identifier: Apache-2.0
// The kernel's part of sessions on this node: one channel for each session that requests kernel
// events. Another thread resolves these events; the channel's scope follows the pods' cgroups.
//
// Invariants:
//   1. Events are resolved for at most one session at a time.
//   2. While it waits for something that is not announced (a cgroup, a resolved event), Poll
//      requests another round every kCgroupInterval.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_PART_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_PART_H_

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "node-agent/agent/cluster/kernel_support.h"
#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/core/agent.h"

namespace weft::agent {

class KernelPart {
 public:
  using Note = std::function<void(std::string)>;  // a message for people

  // `agent` and `pods` outlive this.
  KernelPart(Agent& agent, PodTable& pods, KernelOptions options, kernel::Host host, Note note)
      : agent_(agent),
        pods_(pods),
        note_(std::move(note)),
        support_(std::move(options), std::move(host)) {}

  void Start(int64_t now_ns) { support_.Start(now_ns); }
  struct Polled {
    bool is_due = false;         // sessions are to be settled again
    bool state_changed = false;  // weft.ko is ready now, or is known not to be
  };
  Polled Poll(int64_t now_ns);

  // The cgroups of the pods that the session selects, or of their containers where these are named.
  std::set<uint64_t> Scope(const Session& session);
  // Whether the session, which is active, has a kernel channel, or gets one now.
  bool WantsChannel(const std::string& uid, Session& session, const std::set<uint64_t>& scope);
  // Changes the scope of the session's channel that is on.
  void SettleScope(Session& session, const std::set<uint64_t>& scope);

  [[nodiscard]] KernelSupport& support() { return support_; }
  [[nodiscard]] const KernelSupport& support() const { return support_; }

 private:
  struct Resolving {
    api::TraceSpec spec;
    std::future<Result<CompiledChannel>> events;
  };

  std::optional<Result<CompiledChannel>> Resolve(const std::string& uid, const Session& session);

  Agent& agent_;
  PodTable& pods_;
  const Note note_;
  KernelSupport support_;
  bool is_unsettled_ = false;  // something that announces nothing is waited for
  int64_t looked_ns_ = 0;
  int64_t retried_ns_ = 0;
  std::map<std::string, Resolving> resolving_;  // by session's uid
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_KERNEL_PART_H_
