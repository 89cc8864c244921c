// SPDX-License-Identifier: Apache-2.0
// See huge_pages.h.
#include "node-agent/agent/discovery/huge_pages.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "lib/base/background.h"
#include "lib/base/copy_fd.h"
#include "lib/ring/ring_set.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/memory_maps.h"

namespace weft::agent {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack

// An iovec of another process. Its addresses are no pointers here.
struct Range {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(Range) == sizeof(iovec));

bool IsAligned(uint64_t at) { return at % WEFT_HUGE_PAGE_BYTES == 0; }

// Returns the address of the ring in that process. std::nullopt: the ring cannot have huge pages,
// because it is too small or not aligned.
std::optional<Range> PlaceOf(int set, uint32_t slot, int32_t pid) {
  const auto geometry = ring::ReadGeometry(set);
  if (!geometry || slot >= geometry->slot_count || !IsAligned(geometry->slot_bytes()))
    return std::nullopt;
  struct stat st{};
  const auto mappings = ReadMappings(pid, kMaxMapsBytes);
  if (!mappings || fstat(set, &st) != 0) return std::nullopt;
  for (const Mapping& mapping : *mappings) {
    if (mapping.inode != st.st_ino || mapping.device != st.st_dev) continue;
    const uint64_t at =
        mapping.start + geometry->data_offset + uint64_t{slot} * geometry->slot_bytes();
    if (!IsAligned(at) || at + geometry->slot_bytes() > mapping.end) return std::nullopt;
    return Range{at, geometry->slot_bytes()};
  }
  return std::nullopt;
}

}  // namespace

HugePages::~HugePages() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HugePages::Move(const UniqueFd& ring_set, uint32_t slot, int32_t pid, const UniqueFd& pidfd) {
  Ring ring{.set = CopyFd(ring_set), .slot = slot, .pid = pid, .pidfd = CopyFd(pidfd)};
  if (!ring.set || !ring.pidfd) return;
  {
    const std::lock_guard lock(mutex_);
    if (refused_ || waiting_.size() >= max_waiting_) return;
    waiting_.push_back(std::move(ring));
  }
  changed_.notify_one();
  if (thread_.joinable()) return;
  thread_ = ThreadWithoutSignals([this] { Work(); });
}

// The address is looked up each time, since the process may have executed another program.
HugePages::Outcome HugePages::Try(const Ring& ring) {
  const auto place = PlaceOf(ring.set.get(), ring.slot, ring.pid);
  if (!place || syscall(SYS_process_madvise, ring.pidfd.get(), &*place, 1UL, kCollapse, 0U) >= 0)
    return Outcome::kOver;
  switch (errno) {
    case EAGAIN:
    case EBUSY:
    case ENOMEM:
      return Outcome::kAgain;
    case EPERM:
    case ENOSYS:
      return Outcome::kNever;
    default:
      return Outcome::kOver;
  }
}

void HugePages::Work() {
  std::unique_lock lock(mutex_);
  const auto ends = [this] { return ends_; };
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    Ring ring = std::move(waiting_.front());
    waiting_.pop_front();
    if (changed_.wait_until(lock, ring.next_try, ends)) return;
    lock.unlock();
    const Outcome outcome = Try(ring);
    lock.lock();
    if (outcome == Outcome::kNever) {
      refused_ = true;
      waiting_.clear();
    } else if (outcome == Outcome::kAgain && ++ring.tries < kMaxHugePageTries) {
      ring.next_try = std::chrono::steady_clock::now() + kHugePageRetry;
      waiting_.push_back(std::move(ring));
    }
  }
}

}  // namespace weft::agent
