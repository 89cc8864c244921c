// SPDX-License-Identifier: Apache-2.0
// See run.h.
#include "node-agent/agent/cluster/run.h"

#include <filesystem>

#include "lib/http/health.h"
#include "lib/http/server.h"
#include "lib/kube/client.h"
#include "lib/kube/config.h"
#include "node-agent/agent/cluster/node.h"

namespace weft::agent {

Status RunOnNode(const NodeOptions& options, ipc::Loop& loop) {
  WEFT_ASSIGN(const auto cluster, kube::FindCluster(options.cluster));
  kube::Client client(kube::MakeTransport(cluster), "weft-agent");
  const std::string sessions = options.state_dir + "/sessions";
  std::error_code error;
  std::filesystem::create_directories(sessions, error);
  if (error) return Fail(ErrorCode::kIo, sessions + ": " + error.message());

  Agent agent(loop, sessions, ipc::Channel(UniqueFd(ipc::kKeeperFd)));
  Node node(agent, client, options.node, options.kubelet_dir);
  const http::Health health{.alive = [&] { return node.Stuck(); },
                            .ready = [&] { return node.NotReady(); },
                            .metrics = &node.metrics()};
  WEFT_ASSIGN(const auto server,
              http::Server::Start({.port = options.health_port}, [&](const auto& request) {
                return http::AnswerHealth(health, request);
              }));
  WEFT_TRY(agent.Start(node));
  return loop.Run();
}

}  // namespace weft::agent
