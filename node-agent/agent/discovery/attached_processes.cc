// SPDX-License-Identifier: Apache-2.0
// See attached_processes.h.
#include "node-agent/agent/discovery/attached_processes.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "lib/base/copy_fd.h"
#include "lib/base/pidfd.h"
#include "node-agent/agent/discovery/processes.h"

namespace weft::agent {
namespace {

const std::string kKey = "root/";

}  // namespace

void AttachedProcesses::Add(int32_t pid, UniqueFd pidfd) {
  keeper_(ipc::Keep{kKey + std::to_string(pid), "", CopyFd(pidfd)});
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
  if (!finder_.refusal().empty()) return Fail(ErrorCode::kPermission, finder_.refusal());
  for (const int32_t pid : pids) {
    UniqueFd pidfd = OpenPidfd(pid);
    if (!pidfd)
      return Fail(ErrorCode::kNotFound, "process " + std::to_string(pid) + ": is not there");
    Add(pid, std::move(pidfd));
  }
  Status looked = areas_.LookForAreas();
  for (const int32_t pid : pids)
    if (looked && finder_.ControlOf(pid) == 0) WEFT_TRY(load(pid));
  if (looked) looked = areas_.LookForAreas();
  for (const int32_t pid : pids) {
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
  for (const int32_t pid : pids) keeper_(ipc::Drop{kKey + std::to_string(pid)});
  finder_.RemoveRoots();
  areas_.DropAdopted();
}

bool AttachedProcesses::TakeKept(ipc::Kept& kept) {
  if (!kept.key.starts_with(kKey)) return false;
  finder_.AddRoot(std::atoi(kept.key.c_str() + kKey.size()), std::move(kept.fd));
  return true;
}

}  // namespace weft::agent
