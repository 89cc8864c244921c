// SPDX-License-Identifier: Apache-2.0
// weft-agent: started by weft-keeper, with the channel to it as descriptor ipc::kKeeperFd.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "node-agent/agent/agent.h"
#include "node-agent/agent/local_orders.h"

int main(int argc, char** argv) {
  CLI::App app("Decides what is recorded: sessions, rules, who a ring set belongs to.");
  std::string dir;
  app.add_option("--dir", dir, "folder of the session")->required();
  CLI11_PARSE(app, argc, argv);

  if (fcntl(weft::ipc::kKeeperFd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "weft-agent: to be started by weft-keeper only\n");
    return 1;
  }
  weft::ipc::TakeTurns();
  auto loop = weft::ipc::Loop::Make();
  if (!loop) {
    std::fprintf(stderr, "weft-agent: %s\n", loop.error().message.c_str());
    return 1;
  }
  weft::agent::Agent agent(*loop, std::move(dir),
                           weft::ipc::Channel(weft::UniqueFd(weft::ipc::kKeeperFd)));
  weft::agent::LocalOrders orders(agent);
  weft::Status status = agent.Start(orders);
  if (status) status = loop->Run();
  if (!status) {
    std::fprintf(stderr, "weft-agent: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
