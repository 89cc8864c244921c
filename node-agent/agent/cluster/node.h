// SPDX-License-Identifier: Apache-2.0
// A node of a cluster: the orders of the API server. Pods of this node with weft's volume become
// containers, TraceSessions become sessions, and a session has a channel for every container that
// its selector means.
//
// What is heard (feed.h) is only noted; Settle, called when anything has changed, compares what is
// with what should be and does the difference. So the order of news does not matter, and what
// failed is tried again.
//
//     pod is there, has the library --> its volume opens --> control files, doorbell
//     session Active, pod open and selected --> channel: defined, on
//     session Active, weft.ko ready, first pod --> channel of the kernel; pods come and go: its
//     scope cluster-wide session Active, weft.ko ready --> channel of the kernel, of all tasks
//     session Draining or gone, pod over or gone --> channel: stopping, drained, forgotten pod
//     gone, nothing of it left --> its control files and doorbell are closed no session of a
//     namespace left --> its consumer ends
//
// All runs in the agent's loop, but for the watches and the writing of statuses.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "node-agent/agent/cluster/feed.h"
#include "node-agent/agent/cluster/kernel_support.h"
#include "node-agent/agent/cluster/metrics.h"
#include "node-agent/agent/cluster/probe_search.h"
#include "node-agent/agent/cluster/report.h"
#include "node-agent/agent/cluster/status_writer.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/core/agent_listener.h"
#include "node-agent/agent/discovery/container_lookup.h"

namespace weft::agent {

class Node final : public AgentListener, public ContainerLookup {
 public:
  // `agent` and `client` outlive this.
  Node(Agent& agent, kube::Client& client, std::string name, std::string kubelet_dir,
       KernelOptions kernel, kernel::Host host)
      : agent_(agent),
        client_(client),
        name_(std::move(name)),
        kubelet_dir_(std::move(kubelet_dir)),
        writer_(client),
        kernel_(std::move(kernel), std::move(host)) {}

  // For the kubelet; any thread. "": well.
  [[nodiscard]] std::string Stuck() const;
  [[nodiscard]] std::string NotReady() const;
  [[nodiscard]] const Metrics& metrics() const { return metrics_; }

  bool TakeKept(ipc::Kept&) override { return false; }
  Status Restore() override;
  bool Belongs(const std::string& container, const CallerId& caller) override;
  std::optional<std::string> ContainerOf(int32_t pid) override;
  void SessionChanged(Session& session) override;
  void ChannelFailed(Session& session, const std::string& why) override;
  void ConsumerFailed(const std::string& consumer, const std::string& why) override;
  void OwnerGone() override {}
  void Tick(int64_t now_ns) override;
  void Note(std::string text) override;

 private:
  struct Pod {
    PodFacts facts;
    UniqueFd volume;      // open: its containers can be told
    uint64_t cgroup = 0;  // 0: not looked for, or not there yet
    bool gone = false;
  };
  // The last status of a session that was given to the writer, and when.
  struct WrittenStatus {
    api::SessionStatus status;
    int64_t at_ns = 0;
  };

  // news (node.cc)
  void Hear(News news);
  void HearPods(std::vector<PodFacts> pods);
  void HearOrders(std::vector<api::TraceSession> orders);
  void SeePod(PodFacts pod);
  void SeeOrder(api::TraceSession order);
  void LoseOrder(const std::string& uid);

  // settling (settle.cc)
  void Settle(int64_t now_ns);
  void OpenVolumes();
  Status OpenPod(Pod& pod);
  void SettleSession(const std::string& uid, Session& session);
  void ForgetPods();
  void GiveUpLate(int64_t now_ns);
  void ForgetSessions();
  // (settle_kernel.cc)
  [[nodiscard]] static bool SelectsForKernel(const Session& session, const Pod& pod);
  std::set<uint64_t> KernelScope(const Session& session);
  bool WantsKernelChannel(const std::string& uid, Session& session,
                          const std::set<uint64_t>& scope);
  std::optional<Result<CompiledChannel>> ResolveKernelEvents(const std::string& uid,
                                                             const Session& session);
  void SettleKernelScope(Session& session, const std::set<uint64_t>& scope);
  // (settle_probes.cc)
  std::vector<ProbedContainer> ContainersOf(const Session& session);
  bool WantsProbes(const Session& session);
  void SettleProbes(const std::string& uid, Session& session);
  void PollProbes(int64_t now_ns);
  void PollKernel(int64_t now_ns);
  std::set<std::string> AddUserChannels(Session& session);
  [[nodiscard]] SelectedPods PodsOf(const Session& session) const;
  [[nodiscard]] bool Selects(const Session& session, const Pod& pod) const;
  [[nodiscard]] bool IsActive(const std::string& uid, const Session& session) const;
  void Report(int64_t now_ns);
  void CountAll();

  Agent& agent_;
  kube::Client& client_;
  const std::string name_;
  const std::string kubelet_dir_;
  StatusWriter writer_;
  Metrics metrics_;
  KernelSupport kernel_;
  bool kernel_unsettled_ = false;  // something that announces nothing is waited for
  struct Resolving {
    api::TraceSpec spec;
    std::future<Result<CompiledChannel>> events;
  };
  std::map<std::string, Resolving> resolving_;  // by session's uid; of one at most it is going on
  struct Probes {
    std::string name_space;
    uint64_t channel = 0;  // of the kernel, that it adds events to
    ProbeSearch search;
  };
  std::map<std::string, Probes> probes_;  // by session's uid
  int64_t cgroups_looked_ns_ = 0;
  std::map<std::string, Pod> pods_;                      // by uid
  std::map<std::string, api::TraceSession> impossible_;  // orders that cannot be followed, by uid
  std::map<std::string, std::string> why_impossible_;    // by uid
  std::map<std::string, int64_t> lost_;           // sessions without an order, by uid: since when
  std::map<std::string, WrittenStatus> written_;  // by uid
  Metrics::Sums ended_;                           // of sessions that are forgotten
  bool pods_known_ = false;
  bool orders_known_ = false;
  bool settled_ = true;
  int64_t counted_ns_ = 0;
  std::atomic<int64_t> ticked_ns_{0};
  std::atomic<bool> knows_all_{false};
  std::unique_ptr<Feed> feed_;  // last: it calls the others
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_
