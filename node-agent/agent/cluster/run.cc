// SPDX-License-Identifier: Apache-2.0
// See run.h.
#include "node-agent/agent/cluster/run.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "lib/http/health.h"
#include "lib/kube/client.h"
#include "lib/kube/config.h"
#include "node-agent/agent/cluster/node.h"

namespace weft::agent {

namespace {

// In a pod with hostPID the first process has another root than this one; "": it is the same.
std::string RootOfNode() {
  struct stat own{}, first{};
  if (stat("/", &own) != 0 || stat("/proc/1/root/", &first) != 0) return "";
  const bool same = own.st_dev == first.st_dev && own.st_ino == first.st_ino;
  return same ? "" : "/proc/1/root";
}

// Where journals outlive the keeper; in memory, where that folder cannot be made.
JournalFiles FindJournals(const std::string& run_dir) {
  if (run_dir.empty()) return JournalFiles();
  const std::string folder = run_dir + "/journals";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  if (!error) return JournalFiles(folder);
  std::fprintf(stderr, "weft-node-agent: %s: %s: recording begins anew if weft-keeper ends\n",
               folder.c_str(), error.message().c_str());
  return JournalFiles();
}

}  // namespace

Status RunOnNode(const NodeOptions& options, ipc::Loop& loop) {
  WEFT_ASSIGN(const auto cluster, kube::FindCluster(options.cluster));
  kube::Client client(kube::MakeTransport(cluster), "weft-agent");
  const std::string sessions = options.state_dir + "/sessions";
  std::error_code error;
  std::filesystem::create_directories(sessions, error);
  if (error) return Fail(ErrorCode::kIo, sessions + ": " + error.message());

  Agent agent(loop, sessions, ipc::Connection(UniqueFd(ipc::kKeeperFd)),
              FindJournals(options.run_dir));
  kernel::Host host = kernel::ThisHost();
  host.root = RootOfNode();
  KernelOptions kernel = options.kernel;
  kernel.driver.build_folder = options.state_dir + "/kmod";
  // Outside of a pod, as in tests, none is known.
  const std::string own_namespace =
      options.own_namespace.empty() ? kube::OwnNamespace().value_or("") : options.own_namespace;
  Node node(agent, client, options.node, options.kubelet_dir, std::move(kernel), std::move(host),
            {.is_on = options.attaches, .own_namespace = own_namespace});
  node.FollowOnlyWeftOf(own_namespace);
  const http::Health health{.alive = [&] { return node.Stuck(); },
                            .ready = [&] { return node.NotReady(); },
                            .metrics = &node.metrics()};
  WEFT_ASSIGN(const auto server, http::ServeHealth(options.health_port, health));
  WEFT_TRY(agent.Start(node, node.lookup()));
  std::optional<RelayTickets> tickets;
  if (!options.relay.token_file.empty()) {
    RelayTicketOptions relay = options.relay;
    relay.own_namespace = own_namespace;
    tickets.emplace(client, loop, std::move(relay));
    agent.parts().requests.SetRelayAccess(*tickets);
  } else {
    node.Note(
        "without --relay-token-file relays are not authenticated, and get no ticket of this node");
  }
  return loop.Run();
}

Status StandBy(const NodeOptions& options, ipc::Loop& loop) {
  const http::Health health{.alive = [] { return ""; }, .ready = [&] { return options.not_ready; }};
  WEFT_ASSIGN(const auto server, http::ServeHealth(options.health_port, health));
  ipc::Connection keeper{UniqueFd(ipc::kKeeperFd)};
  WEFT_TRY(loop.WatchConnection(keeper, [&](const auto& message) {
    if (!message) loop.Stop();
  }));
  return loop.Run();
}

}  // namespace weft::agent
