// SPDX-License-Identifier: Apache-2.0
// weft-keeper: started by `weft record`, or the first process of the node agent's container.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysinfo.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "lib/ipc/descriptor_budget.h"
#include "node-agent/keeper/keeper.h"

namespace {

// No other process of a node has these: they are above what distributions, systemd's dynamic users
// and containers' user namespaces are given.
constexpr uint32_t kFirstConsumerUid = 0x77e00000;

// The folder of this program: the others are beside it.
std::string OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Starts, watches and restarts weft's other processes; keeps their descriptors.");
  weft::keeper::Options options;
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
  CLI11_PARSE(app, argc, argv);

  if (options.bin_dir.empty()) options.bin_dir = OwnFolder();
  if (owner >= 0) fcntl(owner, F_SETFD, FD_CLOEXEC);
  if (!options.kubelet_dir.empty()) options.first_consumer_uid = kFirstConsumerUid;
  weft::ipc::TakeTurns();
  weft::ipc::RaiseDescriptorLimit();
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
  auto loop = weft::ipc::Loop::Make();
  if (!loop) {
    std::fprintf(stderr, "weft-keeper: %s\n", loop.error().message.c_str());
    return 1;
  }
  weft::keeper::Keeper keeper(*loop, std::move(options),
                              weft::ipc::Connection(weft::UniqueFd(owner)));
  weft::Status status = keeper.Start();
  if (status) status = loop->Run();
  if (!status) {
    std::fprintf(stderr, "weft-keeper: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
