// SPDX-License-Identifier: Apache-2.0
// weft-agent: the agent of one `weft record`. weft-keeper starts it, with the connection to it as
// descriptor ipc::kKeeperFd.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "node-agent/agent/core/agent.h"
#include "node-agent/agent/core/process.h"
#include "node-agent/agent/local/local_mode.h"

int main(int argc, char** argv) {
  CLI::App app("Decides what is recorded: the session, rules, and the owner of each ring set.");
  std::string dir;
  std::vector<std::string> modules;
  app.add_option("--dir", dir, "folder of the session")->required();
  app.add_option("--kernel-modules", modules,
                 "folders with RELEASE/weft.ko, in the order in which they are searched")
      ->delimiter(':')
      ->envname("WEFT_KERNEL_MODULES");
  CLI11_PARSE(app, argc, argv);
  return weft::agent::RunProcess([&](weft::ipc::Loop& loop) -> weft::Status {
    weft::agent::Agent agent(loop, dir,
                             weft::ipc::Connection(weft::UniqueFd(weft::ipc::kKeeperFd)));
    weft::agent::LocalMode mode(agent, modules);
    weft::agent::OneContainer containers;
    WEFT_TRY(agent.Start(mode, containers));
    return loop.Run();
  });
}
