// SPDX-License-Identifier: Apache-2.0
// weft-keeper: started by `weft record`, or the first process of the node agent's container.
#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "node-agent/keeper/keeper.h"

namespace {

// Each ring set costs a descriptor here, so the soft limit goes up to the hard one. What is left
// free is for sockets, pidfds and messages on their way.
size_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const size_t all = limit.rlim_max == RLIM_INFINITY ? 65536 : limit.rlim_max;
  return all > 1024 ? (all - 512) / 2 : 256;
}

// Of nobody else on a node: above what distributions, systemd's dynamic users and containers' user
// namespaces are given.
constexpr uint32_t kFirstConsumerUid = 0x77e00000;

// Of this program: the others are beside it.
std::string OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Starts, watches and restarts weft's other processes; keeps what they must not lose.");
  weft::keeper::Options options;
  int owner = -1;
  app.add_option("--dir,--state-dir", options.dir, "folder of the session, or of the node's state")
      ->required();
  app.add_option("--bin", options.bin_dir, "folder of the programs; absent: this one's");
  auto* cluster = app.add_option("--kubelet-dir", options.kubelet_dir,
                                 "the kubelet's folder: this is a node of a cluster");
  app.add_option("--owner-fd", owner, "channel to who started this")->excludes(cluster);
  app.add_flag("--remove-dir", options.remove_dir, "remove the folder at the end")
      ->excludes(cluster);
  CLI11_PARSE(app, argc, argv);

  if (options.bin_dir.empty()) options.bin_dir = OwnFolder();
  if (owner >= 0) fcntl(owner, F_SETFD, FD_CLOEXEC);
  if (!options.kubelet_dir.empty()) options.first_consumer_uid = kFirstConsumerUid;
  weft::ipc::TakeTurns();
  options.max_descriptors = RaiseDescriptorLimit();
  auto loop = weft::ipc::Loop::Make();
  if (!loop) {
    std::fprintf(stderr, "weft-keeper: %s\n", loop.error().message.c_str());
    return 1;
  }
  weft::keeper::Keeper keeper(*loop, std::move(options), weft::ipc::Channel(weft::UniqueFd(owner)));
  weft::Status status = keeper.Start();
  if (status) status = loop->Run();
  if (!status) {
    std::fprintf(stderr, "weft-keeper: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
