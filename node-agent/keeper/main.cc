// SPDX-License-Identifier: Apache-2.0
// weft-keeper: started by `weft record`, or the first process of the node agent's container.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysinfo.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "lib/base/open_file_limit.h"
#include "lib/ipc/descriptor_budget.h"
#include "node-agent/keeper/consumer_groups.h"
#include "node-agent/keeper/keeper.h"
#include "node-agent/keeper/lease.h"
#include "node-agent/keeper/standby.h"

namespace {

using weft::keeper::ConsumerGroups;
using weft::keeper::Inheritance;
using weft::keeper::Keeper;
using weft::keeper::Lease;
using weft::keeper::Options;
using weft::keeper::Standby;

// No other process of a node has these: they are above what distributions, systemd's dynamic users
// and containers' user namespaces are given.
constexpr uint32_t kFirstConsumerUid = 0x77e00000;

// The folder of this program: the others are beside it.
std::string OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

// Local mode: until the owner's session has ended.
weft::Status RunForOwner(const Options& options, int owner) {
  WEFT_ASSIGN(weft::ipc::Loop loop, weft::ipc::Loop::Make());
  Lease none("");
  ConsumerGroups no_groups;
  Keeper keeper(loop, options, weft::ipc::Connection(weft::UniqueFd(owner)), none, no_groups,
                Inheritance(options.descriptors.kept));
  WEFT_TRY(keeper.Start());
  return loop.Run();
}

// For consumers that may use `memory` bytes each; 0: all processes share one limit, as without
// control groups that can be used.
ConsumerGroups MakeGroups(uint64_t memory) {
  if (memory == 0) return {};
  const auto own = weft::FindMemoryCgroup();
  auto groups = own ? ConsumerGroups::Make(*own, memory)
                    : weft::Fail(weft::ErrorCode::kUnsupported, "no memory controller is mounted");
  if (groups) return std::move(*groups);
  std::fprintf(stderr,
               "weft-keeper: consumers get no control groups of their own (%s): if one exceeds "
               "the memory limit, all of them end. The container needs /sys/fs/cgroup, writable\n",
               groups.error().message.c_str());
  return {};
}

// Until SIGTERM: by turns one that holds the node's lease and one that waits for it.
weft::Status RunOnNode(const Options& options, ConsumerGroups groups) {
  Lease lease(options.dir);
  Inheritance inheritance(options.descriptors.kept);
  weft::ipc::Connection peer;  // another keeper of this node
  bool is_retired = false;
  WEFT_ASSIGN(bool holds, lease.TryTake());
  for (;;) {
    if (!holds) {
      WEFT_ASSIGN(weft::ipc::Loop loop, weft::ipc::Loop::Make());
      Standby standby(loop, options, lease, is_retired, std::move(peer));
      WEFT_TRY(standby.Start());
      WEFT_TRY(loop.Run());
      if (standby.has_ended()) return {};
      inheritance = standby.TakeInheritance();
      peer = standby.TakePredecessor();
    }
    WEFT_ASSIGN(weft::ipc::Loop loop, weft::ipc::Loop::Make());
    Keeper keeper(loop, options, weft::ipc::Connection(), lease, groups, std::move(inheritance));
    keeper.KnowPredecessor(std::move(peer));
    WEFT_TRY(keeper.Start());
    WEFT_TRY(loop.Run());
    if (!keeper.is_retired()) return {};
    peer = keeper.TakeHeir();
    is_retired = true;
    holds = false;
    inheritance = Inheritance(options.descriptors.kept);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Starts, watches and restarts weft's other processes; keeps their descriptors.");
  Options options;
  int owner = -1;
  app.add_option("--dir,--state-dir", options.dir, "folder of the session, or of the node's state")
      ->required();
  app.add_option("--bin", options.bin_dir,
                 "folder of weft's programs; default: this program's folder");
  auto* cluster = app.add_option("--kubelet-dir", options.kubelet_dir,
                                 "the kubelet's folder; with it, this is a node of a cluster");
  app.add_option("--owner-fd", owner, "descriptor of the connection to the starter")
      ->excludes(cluster);
  app.add_flag("--remove-dir", options.remove_dir, "remove the folder at the end")
      ->excludes(cluster);
  uint64_t consumer_memory = 0;
  app.add_option("--consumer-memory", consumer_memory,
                 "memory limit of each consumer, such as 512Mi; 0: none of its own")
      ->transform(CLI::AsSizeValue(true))
      ->needs(cluster);
  CLI11_PARSE(app, argc, argv);

  if (options.bin_dir.empty()) options.bin_dir = OwnFolder();
  if (owner >= 0) fcntl(owner, F_SETFD, FD_CLOEXEC);
  if (!options.kubelet_dir.empty()) options.first_consumer_uid = kFirstConsumerUid;
  weft::ipc::TakeTurns();
  weft::RaiseOpenFileLimit();
  const size_t limit = weft::ipc::DescriptorLimit();
  const auto cpus = static_cast<size_t>(std::max(1, get_nprocs_conf()));
  if (const size_t needed = weft::ipc::NeededDescriptors(1, cpus); limit < needed) {
    std::fprintf(stderr,
                 "weft-keeper: the limit of open files is %zu, and weft needs %zu at least: raise "
                 "it (ulimit -n, or LimitNOFILE of the container runtime)\n",
                 limit, needed);
    return 1;
  }
  options.descriptors = weft::ipc::BudgetOf(limit);
  // As long as this process lives, the folder counts as in use (cli/session_folder.h).
  weft::UniqueFd folder;
  if (options.remove_dir) {
    folder.reset(open(options.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)flock(folder.get(), LOCK_SH | LOCK_NB);
  }
  const weft::Status status = options.kubelet_dir.empty()
                                  ? RunForOwner(options, owner)
                                  : RunOnNode(options, MakeGroups(consumer_memory));
  if (!status) {
    std::fprintf(stderr, "weft-keeper: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
