// SPDX-License-Identifier: Apache-2.0
// See process_claim.h.
#include "node-agent/hooks/process_claim.h"

#include <mutex>
#include <set>
#include <string>

namespace weft::hooks {
namespace {

struct Claims {
  std::mutex mutex;
  std::set<int32_t> pids;
};

// Never destroyed: a thread that was left behind may end after main.
Claims& All() {
  static auto* const claims = new Claims;
  return *claims;
}

}  // namespace

Result<ProcessClaim> ProcessClaim::Take(int32_t pid) {
  Claims& claims = All();
  const std::lock_guard lock(claims.mutex);
  if (!claims.pids.insert(pid).second)
    return Fail(ErrorCode::kTimeout,
                "process " + std::to_string(pid) + " is in use by weft; it is tried again");
  return ProcessClaim(pid);
}

ProcessClaim::~ProcessClaim() {
  if (pid_ == 0) return;
  Claims& claims = All();
  const std::lock_guard lock(claims.mutex);
  claims.pids.erase(pid_);
}

}  // namespace weft::hooks
