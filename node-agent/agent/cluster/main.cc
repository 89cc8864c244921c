// SPDX-License-Identifier: Apache-2.0
// weft-node-agent: the agent of a node of a cluster. weft-keeper starts it, with the connection to
// it as descriptor ipc::kKeeperFd. Other settings come from the container's environment.
#include <CLI/CLI.hpp>

#include "lib/kube/options.h"
#include "node-agent/agent/cluster/run.h"
#include "node-agent/agent/core/process.h"

int main(int argc, char** argv) {
  CLI::App app("Decides what is recorded on a node: sessions, rules, the owner of each ring set.");
  weft::agent::NodeOptions options;
  app.add_option("--dir", options.state_dir, "folder of the node's state")->required();
  app.add_option("--run-dir", options.run_dir,
                 "folder of what outlives weft's processes, but not the machine: consumers' "
                 "journals; best a tmpfs. \"\": they live as long as weft-keeper")
      ->capture_default_str();
  app.add_option("--kubelet-dir", options.kubelet_dir, "the kubelet's folder")->required();
  app.add_option("--node", options.node, "the node's name")->envname("NODE_NAME");
  app.add_option("--namespace", options.own_namespace,
                 "weft's own namespace: sessions of another weft are refused; default: this pod's. "
                 "Outside of a pod, without it, all are followed");
  app.add_option("--health-port", options.health_port, "port of /healthz, /readyz, /metrics");
  app.add_option_function<std::string>(
         "--kernel", [&options](const std::string& mode) { options.kernel.is_on = mode == "auto"; },
         "auto: load weft.ko, if possible, and record kernel events; off: record none")
      ->check(CLI::IsMember({"auto", "off"}))
      ->envname("WEFT_KERNEL");
  app.add_option("--kernel-modules", options.kernel.driver.folders,
                 "folders with RELEASE/weft.ko, in the order in which they are searched")
      ->delimiter(':')
      ->envname("WEFT_KERNEL_MODULES");
  app.add_option("--kernel-sources", options.kernel.driver.sources,
                 "sources of weft.ko: build it if there is no module for the node's kernel")
      ->envname("WEFT_KERNEL_SOURCES");
  app.add_option_function<std::string>(
         "--attach", [&options](const std::string& mode) { options.attaches = mode == "on"; },
         "on: Traces may have libweft.so loaded into programs that run without it")
      ->check(CLI::IsMember({"on", "off"}))
      ->envname("WEFT_ATTACH");
  app.add_option("--relay-token-file", options.relay.token_file,
                 "file with this pod's token for relays, which prove themselves by TLS then; "
                 "\"\": connect without TLS and tickets, for tests")
      ->envname("WEFT_RELAY_TOKEN_FILE");
  app.add_option("--relay-api-port", options.relay.api_port,
                 "port of relays' HTTPS API, which gives tickets")
      ->capture_default_str()
      ->envname("WEFT_RELAY_API_PORT");
  auto* standby =
      app.add_option("--standby", options.not_ready,
                     "answer probes only; why this node's agent is another one's, if it "
                     "is not ready");
  weft::kube::AddOptions(app, options.cluster);
  CLI11_PARSE(app, argc, argv);
  return weft::agent::RunProcess([&options,
                                  is_standby = standby->count() > 0](weft::ipc::Loop& loop) {
    return is_standby ? weft::agent::StandBy(options, loop) : weft::agent::RunOnNode(options, loop);
  });
}
