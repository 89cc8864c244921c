// SPDX-License-Identifier: Apache-2.0
// See memory_pools.h.
#include "node-agent/agent/discovery/memory_pools.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lib/abi/control.h"
#include "lib/base/copy_fd.h"
#include "node-agent/agent/base/fifo.h"
#include "node-agent/agent/session/ring_grant.h"

namespace weft::agent {
namespace {

const std::string kPoolKey = "memory_pool/";

uint64_t UnitsIn(const UniqueFd& fifo) {
  int bytes = 0;
  return ioctl(fifo.get(), FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

}  // namespace

Status MemoryPools::Open(const std::string& container, const std::string& path, uint64_t budget) {
  const auto known = pools_.find(container);
  if (known != pools_.end() && known->second.budget == budget) return {};
  if (budget == 0) {
    Close(container);
    return {};
  }
  Pool pool{.fifo = {}, .budget = budget};
  WEFT_ASSIGN(pool.fifo, OpenFifo(path));
  // Bytes of another budget stand for other units: the pool begins anew, as does a new one.
  const bool begins = kept_.erase(container) == 0 || known != pools_.end();
  keeper_(ipc::Keep{kPoolKey + container, "", CopyFd(pool.fifo)});
  Pool& now = pools_.insert_or_assign(container, std::move(pool)).first->second;
  if (begins) {
    TakeOut(now.fifo, UnitsIn(now.fifo));
    CountTaken();
    Put(now, Rest(now));
  }
  return {};
}

void MemoryPools::Close(const std::string& container) {
  if (pools_.erase(container) > 0) keeper_(ipc::Drop{kPoolKey + container});
}

void MemoryPools::Put(const Pool& pool, uint64_t units) {
  const std::vector<char> bytes(std::min<uint64_t>(units, WEFT_MEMORY_MAX_UNITS), '.');
  // A container can have filled it: then there is nothing to put back.
  if (!bytes.empty()) (void)!write(pool.fifo.get(), bytes.data(), bytes.size());
}

void MemoryPools::Return(const std::string& container, uint64_t before, uint64_t after) {
  const auto found = pools_.find(container);
  if (found == pools_.end() || after >= before) return;
  const Pool& pool = found->second;
  Put(pool, weft_memory_units(pool.budget, before) - weft_memory_units(pool.budget, after));
}

void MemoryPools::CountTaken() {
  for (auto& [container, pool] : pools_) pool.taken = 0;
  ring_sets_([this](const std::string& container, uint64_t bytes) {
    const auto pool = pools_.find(container);
    if (pool != pools_.end()) pool->second.taken += weft_memory_units(pool->second.budget, bytes);
  });
}

uint64_t MemoryPools::Rest(const Pool& pool) {
  const uint64_t all = PooledBytes(pool.budget) >> weft_memory_unit_shift(pool.budget);
  return all - std::min(all, pool.taken);
}

void MemoryPools::Compare() {
  if (pools_.empty()) return;
  CountTaken();
  for (auto& [container, pool] : pools_) {
    const uint64_t wanted = Rest(pool);
    const uint64_t there = UnitsIn(pool.fifo);
    if (there > wanted) TakeOut(pool.fifo, there - wanted);
    const uint64_t missing = wanted > there ? wanted - there : 0;
    const uint64_t lasting = std::min(missing, pool.missing);
    Put(pool, lasting);
    pool.missing = missing - lasting;
  }
}

bool MemoryPools::IsShort(const std::string& container) const {
  const auto found = pools_.find(container);
  if (found == pools_.end()) return false;
  const Pool& pool = found->second;
  return UnitsIn(pool.fifo) < PooledBytes(pool.budget) / 2 >> weft_memory_unit_shift(pool.budget);
}

bool MemoryPools::TakeKept(const ipc::Kept& kept) {
  if (!kept.key.starts_with(kPoolKey)) return false;
  kept_.insert(kept.key.substr(kPoolKey.size()));
  return true;
}

}  // namespace weft::agent
