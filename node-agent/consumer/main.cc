// SPDX-License-Identifier: Apache-2.0
// weft-consumer: started by the keeper with a connection to it as descriptor 3, and nothing else.
#include <grp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/base/host_clock.h"
#include "lib/base/open_file_limit.h"
#include "lib/ipc/descriptor_budget.h"
#include "lib/sandbox/sandbox.h"
#include "lib/tls/engine.h"
#include "node-agent/consumer/service.h"

namespace {

// The kernel's; C libraries of today have no name for it.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

// Asks for short time slices, without a larger part of the CPU: a process with short slices gets
// the CPU sooner (from Linux 6.12 on; earlier kernels ignore this). A program can fill its ring in
// milliseconds, and keep the CPU from its reader for as long.
void AskForShortSlices() {
  SchedAttributes attributes{.runtime = 100'000};
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Handles "--uid N", the only option: changes to that user, which no other process has.
bool BecomeUser(int argc, char** argv) {
  if (argc == 1) return true;
  if (argc != 3 || std::strcmp(argv[1], "--uid") != 0) return false;
  char* end = nullptr;
  const auto uid = static_cast<uid_t>(std::strtoul(argv[2], &end, 10));
  return *end == '\0' && uid != 0 && ::setgroups(0, nullptr) == 0 &&
         ::setresgid(uid, uid, uid) == 0 && ::setresuid(uid, uid, uid) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  AskForShortSlices();
  weft::RaiseOpenFileLimit();
  const weft::ipc::DescriptorBudget budget = weft::ipc::BudgetOf(weft::ipc::DescriptorLimit());
  if (!BecomeUser(argc, argv)) {
    std::fputs(
        "weft-consumer: wrong arguments, or no right to change to the user of --uid N: let "
        "weft-keeper start this program\n",
        stderr);
    return 1;
  }
  // Both open files, which the sandbox forbids.
  (void)weft::HostMonotonicNs();
  weft::tls::Prepare();
  const auto cpus = static_cast<uint32_t>(::get_nprocs_conf());
  // Every thread enters a sandbox of its own; afterwards there can be no more threads.
  const auto writer = weft::consumer::BackgroundWriter::Make([] { return weft::EnterSandbox(); });
  const weft::Status sandboxed = writer ? weft::EnterSandbox() : std::unexpected(writer.error());
  if (!sandboxed) {
    std::fprintf(stderr, "weft-consumer: %s\n", sandboxed.error().message.c_str());
    return 1;
  }
  return weft::consumer::Service(weft::UniqueFd(weft::ipc::kKeeperFd), cpus, budget, **writer)
      .Run();
}
