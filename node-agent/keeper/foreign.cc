// SPDX-License-Identifier: Apache-2.0
// See foreign.h.
#include "node-agent/keeper/foreign.h"

#include <sched.h>

#include <latch>
#include <system_error>
#include <thread>

namespace weft::keeper {

void CloseForeign(std::vector<UniqueFd> fds) {
  if (fds.empty()) return;
  std::latch copied(1);
  std::latch closed(1);
  std::thread last;
  try {
    last = std::thread([&] {
      (void)unshare(CLONE_FILES);  // a copy of all descriptors, closed when the thread exits
      copied.count_down();
      closed.wait();
    });
  } catch (const std::system_error&) {
    return;  // no thread is available: closed like any other
  }
  copied.wait();
  fds.clear();
  closed.count_down();
  last.join();
}

}  // namespace weft::keeper
