// SPDX-License-Identifier: Apache-2.0
// weft-consumer: started by the keeper with a channel to it as descriptor 3, and nothing else.
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <cstdio>

#include "node-agent/consumer/sandbox.h"
#include "node-agent/consumer/service.h"

int main() {
  // Each ring set is a descriptor.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const auto cpus = static_cast<uint32_t>(::get_nprocs_conf());
  // Every thread enters a sandbox of its own; afterwards there can be no more threads.
  const auto writer = weft::consumer::BackgroundWriter::Make(weft::consumer::EnterSandbox);
  const weft::Status sandboxed =
      writer ? weft::consumer::EnterSandbox() : std::unexpected(writer.error());
  if (!sandboxed) {
    std::fprintf(stderr, "weft-consumer: %s\n", sandboxed.error().message.c_str());
    return 1;
  }
  return weft::consumer::Service(weft::UniqueFd(weft::ipc::kKeeperFd), cpus, **writer).Run();
}
