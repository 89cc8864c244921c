// SPDX-License-Identifier: Apache-2.0
// Moves rings that are in full use into huge pages, in their processes: the writer's stores, which
// go through all of a ring, then miss the TLB less. Every page of such a ring exists already, so
// no memory is added, and the charge does not move. The kernel does this (MADV_COLLAPSE, since
// 6.1), and is called in a thread of this class: it may have to make room first, and a writer that
// comes meanwhile waits for the copy. The kernel often refuses while a page is in use; the class
// then tries again.
//
// If huge pages are not available (an older kernel, no CAP_SYS_NICE, memory that is too
// fragmented) the ring stays as it is, without a message. The agent's thread calls.
#ifndef WEFT_NODE_AGENT_AGENT_DISCOVERY_HUGE_PAGES_H_
#define WEFT_NODE_AGENT_AGENT_DISCOVERY_HUGE_PAGES_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "lib/base/unique_fd.h"
#include "lib/ipc/descriptor_budget.h"

namespace weft::agent {

class HugePages {
 public:
  HugePages() = default;
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  // Waits for the one that is being moved.
  ~HugePages();

  // Asks for huge pages for a slot's ring, in a ring set that `pid`, which `pidfd` names, maps.
  // Returns at once.
  void Move(const UniqueFd& ring_set, uint32_t slot, int32_t pid, const UniqueFd& pidfd);

 private:
  struct Ring {
    UniqueFd set;
    uint32_t slot = 0;
    int32_t pid = 0;
    UniqueFd pidfd;
    uint32_t tries = 0;
    std::chrono::steady_clock::time_point next_try;
  };

  enum class Outcome : uint8_t {
    kOver,   // moved, or it cannot be
    kAgain,  // not now
    kNever,  // the kernel lets us move none
  };

  void Work();
  static Outcome Try(const Ring& ring);

  // Each has two descriptors.
  const size_t max_waiting_ = ipc::BudgetOf(ipc::DescriptorLimit()).waiting;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Ring> waiting_;  // in the order of their next tries
  bool refused_ = false;      // by this kernel, for good
  bool ends_ = false;
  std::thread thread_;  // from the first ring on
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_DISCOVERY_HUGE_PAGES_H_
