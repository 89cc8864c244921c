// SPDX-License-Identifier: Apache-2.0
// weft-agent: started by weft-keeper, with the connection to it as descriptor ipc::kKeeperFd.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "lib/kube/options.h"
#include "node-agent/agent/cluster/run.h"
#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/local/local_mode.h"

namespace {

weft::Status RunLocally(const weft::agent::NodeOptions& options, weft::ipc::Loop& loop) {
  weft::agent::Agent agent(loop, options.state_dir,
                           weft::ipc::Connection(weft::UniqueFd(weft::ipc::kKeeperFd)));
  weft::agent::LocalMode mode(agent, options.kernel.driver.folders);
  weft::agent::OneContainer containers;
  WEFT_TRY(agent.Start(mode, containers));
  return loop.Run();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Decides what is recorded: sessions, rules, and the owner of each ring set.");
  weft::agent::NodeOptions options;
  app.add_option("--dir", options.state_dir, "folder of the session, or of the node's state")
      ->required();
  auto* kubelet = app.add_option("--kubelet-dir", options.kubelet_dir,
                                 "the kubelet's folder; with it, this is a node of a cluster");
  app.add_option("--node", options.node, "the node's name")->envname("NODE_NAME")->needs(kubelet);
  app.add_option("--health-port", options.health_port, "port of /healthz, /readyz, /metrics")
      ->needs(kubelet);
  app.add_option_function<std::string>(
         "--kernel", [&options](const std::string& mode) { options.kernel.is_on = mode == "auto"; },
         "auto: load weft.ko, if possible, and record kernel events; off: record none")
      ->check(CLI::IsMember({"auto", "off"}))
      ->envname("WEFT_KERNEL")
      ->needs(kubelet);
  app.add_option("--kernel-modules", options.kernel.driver.folders,
                 "folders with RELEASE/weft.ko, in the order in which they are searched")
      ->delimiter(':')
      ->envname("WEFT_KERNEL_MODULES");
  app.add_option("--kernel-sources", options.kernel.driver.sources,
                 "sources of weft.ko: build it if there is no module for the node's kernel")
      ->envname("WEFT_KERNEL_SOURCES")
      ->needs(kubelet);
  weft::kube::AddOptions(app, options.cluster);
  CLI11_PARSE(app, argc, argv);

  if (fcntl(weft::ipc::kKeeperFd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr,
                 "weft-agent: no connection to weft-keeper: let weft-keeper start this program\n");
    return 1;
  }
  weft::ipc::TakeTurns();
  std::signal(SIGPIPE, SIG_IGN);
  auto loop = weft::ipc::Loop::Make();
  weft::Status status = loop ? weft::Status{} : std::unexpected(loop.error());
  if (status)
    status = options.kubelet_dir.empty() ? RunLocally(options, *loop)
                                         : weft::agent::RunOnNode(options, *loop);
  if (!status) {
    std::fprintf(stderr, "weft-agent: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
