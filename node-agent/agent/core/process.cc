// SPDX-License-Identifier: Apache-2.0
// See process.h.
#include "node-agent/agent/core/process.h"

#include <errno.h>
#include <fcntl.h>

#include <csignal>
#include <cstdio>

#include "lib/ipc/messages.h"

namespace weft::agent {

int RunProcess(const std::function<Status(ipc::Loop&)>& run) {
  const char* name = program_invocation_short_name;
  if (fcntl(ipc::kKeeperFd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "%s: no connection to weft-keeper: let weft-keeper start this program\n",
                 name);
    return 1;
  }
  (void)fcntl(ipc::kLeaseFd, F_SETFD, FD_CLOEXEC);  // only on a node
  ipc::TakeTurns();
  std::signal(SIGPIPE, SIG_IGN);
  auto loop = ipc::Loop::Make();
  const Status status = loop ? run(*loop) : std::unexpected(loop.error());
  if (!status) {
    std::fprintf(stderr, "%s: %s\n", name, status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace weft::agent
