// SPDX-License-Identifier: Apache-2.0
// A node of a cluster: makes the node record what the API server's objects request. Pods of this
// node with weft's volume become containers, TraceSessions become sessions, and a session has a
// channel for every container that its selector matches.
//
// Changes (feed.h) are only noted. Settle, which is called after any change, compares the actual
// with the desired state and acts on the difference. The order of changes therefore does not
// matter, and a step that failed is tried again.
//
//     pod is there, has the library --> its volume opens --> control files, doorbell
//     session Active, pod open and selected --> channel: defined, on
//     session Active with attach, other pod selected --> channel; the library into its processes
//     session Active, weft.ko ready, first pod --> channel of the kernel; scope: these pods
//     cluster-wide session Active, weft.ko ready --> channel of the kernel, of all tasks
//     session Draining or gone, pod over or gone --> channel: stopping, drained, forgotten
//     pod gone, nothing of it left --> its control files and doorbell are closed
//     no session of a namespace left --> its consumer ends
//
// Invariants:
//   1. Before pods and TraceSessions were listed once, nothing is begun or ended.
//   2. A session is removed only when its TraceSession is gone and its channels are drained.
//   3. What is reported of a session never falls (status_reports.h).
// Parts: pod_table.h, kernel_part.h and probe_part.h (weft.ko), attach_part.h, hook_part.h,
// event_part.h, status_reports.h. They run in the agent's loop, but for watches and status writes.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "node-agent/agent/cluster/absence.h"
#include "node-agent/agent/cluster/attach_part.h"
#include "node-agent/agent/cluster/consumer_deaths.h"
#include "node-agent/agent/cluster/event_part.h"
#include "node-agent/agent/cluster/feed.h"
#include "node-agent/agent/cluster/hook_part.h"
#include "node-agent/agent/cluster/kernel_part.h"
#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/cluster/probe_part.h"
#include "node-agent/agent/cluster/report.h"
#include "node-agent/agent/cluster/status_reports.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/core/agent_listener.h"

namespace weft::agent {

class Node final : public AgentListener {
 public:
  // `agent` and `client` outlive this.
  Node(Agent& agent, kube::Client& client, std::string name, std::string kubelet_dir,
       KernelOptions kernel, kernel::Host host, AttachPolicy attach);
  // Saves the counts of all sessions.
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Before the start: refuses sessions that the controller of the weft in this namespace cannot
  // have made (api::WhyForeign). Without it all are followed.
  void FollowOnlyWeftOf(std::string name_space) { own_namespace_ = std::move(name_space); }

  // For the kubelet; any thread. "": well.
  [[nodiscard]] std::string Stuck() const;
  [[nodiscard]] std::string NotReady() const;
  [[nodiscard]] const Metrics& metrics() const { return reports_.metrics(); }
  // Tells the agent which container a process is in.
  [[nodiscard]] ContainerLookup& lookup() { return pods_; }

  bool TakeKept(ipc::Kept&) override { return false; }
  Status Restore() override;
  void SessionChanged(Session& session) override;
  void ChannelFailed(Session& session, const std::string& why) override;
  void ConsumerOutOfMemory(const std::string& consumer, const std::string& why) override;
  void ConsumerFailed(const std::string& consumer, const std::string& why) override;
  void OwnerGone() override {}
  void Tick(int64_t now_ns) override;
  void Note(std::string text) override;

 private:
  void Hear(News news);
  void HearOrders(std::vector<api::TraceSession> orders);
  void SeeOrder(api::TraceSession order);
  void ChangeSession(Session& session, Session&& newer);
  void LoseOrder(const std::string& uid);

  void Settle(int64_t now_ns);
  void SettleSession(const std::string& uid, Session& session, const std::set<std::string>* user);
  std::set<std::string> AddUserChannels(Session& session);
  [[nodiscard]] bool IsActive(const std::string& uid, const Session& session) const;
  void GiveUpLate(int64_t now_ns);
  void ForgetSessions();
  void Report(int64_t now_ns);
  // Once all is known, lets the sessions of before say when no agent was here.
  void NotePresence(int64_t now_ns);

  Agent& agent_;
  kube::Client& client_;
  const std::string name_;
  std::string own_namespace_;
  StatusReports reports_;
  PodTable pods_;
  KernelPart kernel_;
  ProbePart probes_;
  HookPart hooks_;
  AttachPart attach_;
  EventPart events_;
  std::map<std::string, api::TraceSession> impossible_;  // orders that cannot be followed, by uid
  std::map<std::string, std::string> why_impossible_;    // by uid
  ConsumerDeaths deaths_;
  std::optional<Absence> absence_;              // from Restore on
  std::optional<kube::WallTime> absent_since_;  // until all is known
  std::set<std::string> restored_;              // sessions of before the start, by uid
  std::map<std::string, int64_t> lost_;         // sessions without an order, by uid: since when
  bool orders_known_ = false;
  bool settled_ = true;
  std::atomic<int64_t> ticked_ns_{0};
  std::atomic<bool> knows_all_{false};
  std::unique_ptr<Feed> feed_;  // last: it calls the others
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_NODE_H_
