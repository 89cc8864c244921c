// SPDX-License-Identifier: Apache-2.0
// See attached_processes.h.
#include "node-agent/agent/discovery/attached_processes.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>

#include "lib/base/copy_fd.h"
#include "lib/base/pidfd.h"
#include "lib/base/processes.h"
#include "node-agent/agent/discovery/processes.h"

namespace weft::agent {
namespace {

const std::string kRootKey = "root/";
constexpr int kLoadRounds = 2;

}  // namespace

void AttachedProcesses::Add(int32_t pid, UniqueFd pidfd) {
  keeper_(ipc::Keep{kRootKey + std::to_string(pid), "", CopyFd(pidfd)});
  finder_.AddRoot(pid, std::move(pidfd));
}

void AttachedProcesses::AddStarter() {
  finder_.Begin();
  const int32_t starter = ParentOf(getppid());
  UniqueFd pidfd = OpenPidfd(starter);
  if (starter > 1 && pidfd) Add(starter, std::move(pidfd));
}

Status AttachedProcesses::Attach(const std::vector<int32_t>& pids, const Load& load) {
  finder_.Begin();
  if (!finder_.refusal().empty())
    return Fail(
        ErrorCode::kPermission,
        "programs that run already (--pid, --process) are not recorded: " + finder_.refusal() +
            "; run weft as root, or let weft start the program: weft record ... -- "
            "PROGRAM");
  std::map<int32_t, UniqueFd> running;
  for (const int32_t pid : pids) {
    UniqueFd pidfd = OpenPidfd(pid);
    if (!pidfd && errno != ESRCH) return FailErrno("process " + std::to_string(pid));
    if (!pidfd) continue;
    running.emplace(pid, CopyFd(pidfd));
    Add(pid, std::move(pidfd));
  }
  // A process may end at any moment, and then is left out. It may also execute another program,
  // into which the next round loads.
  Status looked = areas_.LookForAreas();
  // An agent may have died after it loaded the library, before it had done all; and at the end of a
  // recording the library is made silent. That holds also for processes that were forked since.
  for (const int32_t pid : AllProcesses()) {
    if (finder_.ControlOf(pid) == 0) continue;
    const Status loaded = load(pid);
    if (loaded || loaded.error().code == ErrorCode::kNotFound) continue;
    const auto asked = running.find(pid);
    if (asked != running.end() && !HasEnded(asked->second)) return loaded;
  }
  bool has_loaded = true;
  for (int round = 0; round < kLoadRounds && looked && has_loaded; ++round) {
    has_loaded = false;
    for (const auto& [pid, pidfd] : running) {
      if (finder_.ControlOf(pid) != 0 || HasEnded(pidfd)) continue;
      const Status loaded = load(pid);
      const bool tries_again =
          !loaded && loaded.error().code == ErrorCode::kNotFound && round + 1 < kLoadRounds;
      if (!loaded && !tries_again && !HasEnded(pidfd)) return loaded;
      has_loaded = true;
    }
    if (has_loaded) looked = areas_.LookForAreas();
  }
  std::erase_if(running, [](const auto& process) { return HasEnded(process.second); });
  if (running.empty())
    return Fail(ErrorCode::kNotFound, pids.size() == 1
                                          ? "process " + std::to_string(pids[0]) + " has ended"
                                          : "all of these processes have ended");
  for (const auto& [pid, pidfd] : running) {
    if (finder_.ControlOf(pid) != 0) continue;
    const std::string why =
        looked
            ? "was started by another recording, or its libweft.so records nothing (WEFT_DIR was "
              "not set): start it again"
            : looked.error().message;
    return Fail(ErrorCode::kInvalid, "process " + std::to_string(pid) + ": " + why);
  }
  return {};
}

void AttachedProcesses::RemoveAll(const std::vector<int32_t>& pids) {
  for (const int32_t pid : pids) keeper_(ipc::Drop{kRootKey + std::to_string(pid)});
  finder_.RemoveRoots();
  areas_.DropAdopted();
}

bool AttachedProcesses::TakeKept(ipc::Kept& kept) {
  if (!kept.key.starts_with(kRootKey)) return false;
  finder_.AddRoot(std::atoi(kept.key.c_str() + kRootKey.size()), std::move(kept.fd));
  return true;
}

}  // namespace weft::agent
