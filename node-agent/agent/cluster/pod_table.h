// SPDX-License-Identifier: Apache-2.0
// The pods of this node, as the API server names them: their volumes, control files and doorbells,
// their cgroups, and which process is in which container of theirs.
//
// Invariants:
//   1. A pod with an open volume has a control area for each of its containers, and a doorbell.
//   2. A pod that is gone stays here until no channel of a session is of it; then its control areas
//      and its doorbell are closed.
//   3. Only the kernel (cgroup, pidfd) and the doorbell that was called identify a process.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_POD_TABLE_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_POD_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/unique_fd.h"
#include "node-agent/agent/cluster/pod.h"
#include "node-agent/agent/cluster/pod_cgroups.h"
#include "node-agent/agent/cluster/report.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/discovery/container_lookup.h"

namespace weft::agent {

// Where libweft.so may be loaded into programs that run without it.
struct AttachPolicy {
  bool is_on = false;
  std::string own_namespace;  // weft's; "": not known

  // Why not for pods of a namespace; "": it may.
  [[nodiscard]] std::string WhyNot(const std::string& name_space) const;
};

class PodTable final : public ContainerLookup {
 public:
  struct Pod {
    PodFacts facts;
    UniqueFd volume;            // open: its containers can be told
    uint64_t memory_limit = 0;  // of its cgroup and those above it; 0: none
    uint64_t cgroup = 0;        // 0: not looked for, or not there yet
    bool gone = false;
  };
  using Note = std::function<void(std::string)>;  // a message for people

  // `agent` outlives this. `keeps_all`: also pods without the library, whose kernel events can be
  // recorded.
  PodTable(Agent& agent, std::string kubelet_dir, bool keeps_all, AttachPolicy attach, Note note)
      : agent_(agent),
        kubelet_dir_(std::move(kubelet_dir)),
        keeps_all_(keeps_all || attach.is_on),
        attach_(std::move(attach)),
        note_(std::move(note)) {}

  // What the API server says of pods.
  void List(std::vector<PodFacts> pods);
  void See(PodFacts facts);
  void Lose(const std::string& uid);
  // The pods were listed once.
  [[nodiscard]] bool is_known() const { return is_known_; }

  // Opens volumes that the kubelet has made by now. True: there was one.
  bool OpenVolumes();
  // Forgets pods that are gone and of which no session has a channel.
  void ForgetUnused();

  [[nodiscard]] std::map<std::string, Pod>& all() { return pods_; }  // by uid
  [[nodiscard]] const std::map<std::string, Pod>& all() const { return pods_; }

  // Does the session record programs that run without the library?
  [[nodiscard]] bool Attaches(const Session& session) const;
  // Why a session that asks for that does not; "": it does, or does not ask.
  [[nodiscard]] std::string WhyNotAttached(const Session& session) const;
  // Whether the session records user events of containers of this pod.
  [[nodiscard]] bool SelectsForUser(const Session& session, const Pod& pod) const;
  // Returns the containers of a selected pod whose processes can be told what is on.
  [[nodiscard]] std::vector<std::string> ContainersOf(const Session& session, const Pod& pod) const;
  // Learns the memory limit of a pod's cgroup.
  void LearnMemoryLimit(Pod& pod);

  // For reports: the pods that the session selects, and what their processes say.
  [[nodiscard]] SelectedPods SelectedBy(const Session& session) const;

  // The smallest memory limit that holds for a container; 0: there is none.
  [[nodiscard]] static uint64_t MemoryLimitOf(const Pod& pod, const std::string& container);

  bool Belongs(const std::string& container, const CallerId& caller) override;
  std::optional<std::string> ContainerOf(int32_t pid) override;
  std::string OwnerOf(const std::string& container) override;

 private:
  Status Open(Pod& pod);
  // Why no process of the pod's selected containers has the library; none: one has, or it is not
  // known yet.
  [[nodiscard]] std::optional<SelectedPods::Reason> WhyWithoutLibrary(
      const std::string& uid, const Pod& pod, const api::PodSelection& selection) const;
  // Why no process of the containers that were made without the library has it by now; none: one
  // has, or it is not known yet.
  [[nodiscard]] std::optional<SelectedPods::Reason> WhyNotAttached(const Session& session,
                                                                   const std::string& uid,
                                                                   const Pod& pod) const;
  // A session has a channel of a container of this pod.
  [[nodiscard]] bool HasChannel(const std::string& pod_uid) const;
  // A session has a channel of this container, or had one whose control areas are still there.
  [[nodiscard]] bool IsAttached(const std::string& container) const;
  // Makes the memory pools of the pod's containers, or fits them to limits that changed.
  void OpenPools(Pod& pod, const std::string& folder);

  Agent& agent_;
  const std::string kubelet_dir_;
  const bool keeps_all_;
  const AttachPolicy attach_;
  const Note note_;
  PodCgroups memory_cgroups_ = PodCgroups::OfMemory();
  std::map<std::string, Pod> pods_;
  bool is_known_ = false;
};

// Whether the session records what the kernel does for this pod.
bool SelectsForKernel(const Session& session, const PodTable::Pod& pod);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_POD_TABLE_H_
