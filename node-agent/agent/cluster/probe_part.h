// SPDX-License-Identifier: Apache-2.0
// Adds probes of functions of containers' programs to a session's kernel channel while it is on,
// as containers start that have the program.
//
// Invariants:
//   1. At most one search goes on for a namespace: a file system that never answers stops only the
//      searches of its own namespace.
//   2. A search whose session is over is kept as long as its thread runs.
//
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_PART_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_PART_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node-agent/agent/cluster/kernel_support.h"
#include "node-agent/agent/cluster/pod_table.h"
#include "node-agent/agent/cluster/probe_search.h"
#include "node-agent/agent/core/agent.h"

namespace weft::agent {

class ProbePart {
 public:
  // All outlive this.
  ProbePart(Agent& agent, const PodTable& pods, KernelSupport& kernel)
      : agent_(agent), pods_(pods), kernel_(kernel) {}

  // Goes on searching for the session, and adds what was found to its kernel channel.
  void Settle(const std::string& uid, Session& session);
  // Forgets searches that are over. True: one has something to do, and sessions are to be settled.
  bool Poll(int64_t now_ns);

 private:
  struct Probes {
    std::string name_space;
    uint64_t channel = 0;  // the kernel channel that it adds events to
    ProbeSearch search;
  };

  std::vector<ProbedContainer> ContainersOf(const Session& session);
  bool IsWantedBy(const Session& session) const;

  Agent& agent_;
  const PodTable& pods_;
  KernelSupport& kernel_;
  std::map<std::string, Probes> probes_;  // by session's uid
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_PROBE_PART_H_
