// SPDX-License-Identifier: Apache-2.0
// Which processes a thread of the agent works at: two that write hooks into one process at a time
// would put them in the same place. One list for all threads, also for those that were left behind
// (docs/adr/0068). Thread-safety: any thread.
#ifndef WEFT_NODE_AGENT_HOOKS_PROCESS_CLAIM_H_
#define WEFT_NODE_AGENT_HOOKS_PROCESS_CLAIM_H_

#include <cstdint>
#include <utility>

#include "lib/base/result.h"

namespace weft::hooks {

// A process that is this one's, as long as this object lives.
class ProcessClaim {
 public:
  // kTimeout: it is another one's.
  static Result<ProcessClaim> Take(int32_t pid);
  ProcessClaim(ProcessClaim&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ProcessClaim& operator=(ProcessClaim&&) = delete;
  ~ProcessClaim();

 private:
  explicit ProcessClaim(int32_t pid) : pid_(pid) {}

  int32_t pid_;  // 0: none
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_PROCESS_CLAIM_H_
