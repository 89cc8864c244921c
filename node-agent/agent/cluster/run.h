// SPDX-License-Identifier: Apache-2.0
// The agent on a node of a cluster, as a process: client, /healthz and /metrics, the loop.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_RUN_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_RUN_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/ipc/loop.h"
#include "lib/kube/transport.h"
#include "node-agent/agent/cluster/kernel_support.h"
#include "node-agent/agent/cluster/relay_tickets.h"

namespace weft::agent {

struct NodeOptions {
  kube::TransportConfig cluster;
  std::string node;                   // its name in the cluster
  std::string own_namespace;          // weft's; "": this pod's
  std::string kubelet_dir;            // of the node's kubelet
  std::string state_dir;              // kept over restarts of the machine
  std::string run_dir = "/run/weft";  // kept over restarts of weft; best a tmpfs
  uint16_t health_port = 8080;
  KernelOptions kernel;
  bool attaches = false;  // may load libweft.so into programs that run without it
  RelayTicketOptions relay;
  std::string not_ready;  // of StandBy: the answer to /readyz; "": it is ready
};

// Until the keeper is gone. The connection to it is descriptor ipc::kKeeperFd.
Status RunOnNode(const NodeOptions& options, ipc::Loop& loop);

// Serves a keeper that waits for the node's lease (node-agent/keeper/standby.h): only answers
// the kubelet.
Status StandBy(const NodeOptions& options, ipc::Loop& loop);

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_RUN_H_
