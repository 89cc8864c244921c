// SPDX-License-Identifier: Apache-2.0
// How weft's processes divide the descriptors that the limit on open files (RLIMIT_NOFILE) gives
// each of them. Keeper, agent and consumers inherit one hard limit, so each of them knows what the
// others have.
//
// A ring set that is not read to its end costs keeper and agent two descriptors (its memory and its
// process's pidfd) and the consumer one. The keeper takes no more ring sets than fit; the others
// wait in the doorbell's backlog until descriptors come back. The limit therefore bounds the ring
// sets that are open at one moment, never those of a whole recording. Thread-safety: it has pure
// functions and a system call.
#ifndef WEFT_LIB_IPC_DESCRIPTOR_BUDGET_H_
#define WEFT_LIB_IPC_DESCRIPTOR_BUDGET_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

#include "lib/ipc/limits.h"

namespace weft::ipc {

// Descriptors that keeper, agent and consumer have open while nothing is recorded, with room for
// files that are open for a moment (measured in tests/local/descriptors_test.py).
inline constexpr size_t kOwnDescriptors = 48;
// With fewer descriptors, each ring set would wait for the one before it.
inline constexpr size_t kFewestForRings = 32;
// Above this no limit means anything here.
inline constexpr size_t kMostDescriptors = size_t{1} << 20;

struct DescriptorBudget {
  size_t silent_callers = 0;  // of one doorbell: a connection and a pidfd each
  size_t kept = 0;            // descriptors that the keeper's vault may hold
  size_t rings = 0;           // ring sets that the agent may hold: two descriptors each
  size_t waiting = 0;  // of the agent, for short use: clients, rings to be moved into huge pages
  size_t ended_rings = 0;  // of the consumer: with this many read to their end, a commit is due
};

// `limit`: of open files. Half of it stays free at least: on a node, volumes and doorbells of all
// pods need it.
constexpr DescriptorBudget BudgetOf(size_t limit) {
  const size_t all = std::min(limit, kMostDescriptors);
  DescriptorBudget budget;
  budget.silent_callers = std::clamp(all / 8, size_t{8}, size_t{256});
  budget.waiting = std::clamp(all / 32, size_t{4}, size_t{64});
  const size_t fixed = kOwnDescriptors + 2 * budget.silent_callers;
  const size_t rest = all > fixed ? all - fixed : 0;
  budget.kept = std::max(kFewestForRings, std::min(rest, all / 2));
  budget.rings = budget.kept / 2;
  budget.ended_rings = std::clamp(all / 32, size_t{2}, size_t{64});
  return budget;
}

// Descriptors that a recording of `traces` Traces on `cpus` CPUs needs: the consumer holds a file
// per CPU for each Trace, and two more.
constexpr size_t NeededDescriptors(size_t traces, size_t cpus) {
  return std::max(size_t{128}, kOwnDescriptors + kFewestForRings + traces * (cpus + 2));
}

// Returns the hard limit of this process.
inline size_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return limit.rlim_max == RLIM_INFINITY ? kMostDescriptors
                                         : std::min<size_t>(limit.rlim_max, kMostDescriptors);
}

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_DESCRIPTOR_BUDGET_H_
