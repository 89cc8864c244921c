// SPDX-License-Identifier: Apache-2.0
// See perf_counters.h. Numbers are linux/perf_event.h's; names are those of lttng-add-context(1).
#include "node-agent/agent/session/perf_counters.h"

#include <linux/perf_event.h>

#include <charconv>
#include <string>

namespace weft::agent {
namespace {

struct Named {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr Named kSimple[] = {
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-fault", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
};

constexpr Named kCaches[] = {
    {"L1-dcache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D},
    {"L1-icache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1I},
    {"LLC", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL},
    {"dTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB},
    {"iTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_ITLB},
    {"branch", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_BPU},
};

constexpr uint64_t CacheOp(uint64_t op, uint64_t result) { return op << 8 | result << 16; }

constexpr Named kCacheOps[] = {
    {"-loads", 0, CacheOp(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    {"-load-misses", 0, CacheOp(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    {"-stores", 0, CacheOp(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    {"-store-misses", 0, CacheOp(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    {"-prefetches", 0, CacheOp(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    {"-prefetch-misses", 0,
     CacheOp(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS)},
};

// "raw:rHEX:name"
std::optional<PerfCounter> Raw(std::string_view name) {
  if (!name.starts_with("raw:r")) return std::nullopt;
  PerfCounter counter{.type = PERF_TYPE_RAW};
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + 5, end, counter.config, 16);
  if (error != std::errc() || at == end || *at != ':') return std::nullopt;
  return counter;
}

}  // namespace

std::optional<PerfCounter> FindPerfCounter(std::string_view name) {
  for (const Named& counter : kSimple)
    if (name == counter.name) return PerfCounter{counter.type, counter.config};
  for (const Named& cache : kCaches) {
    if (!name.starts_with(cache.name)) continue;
    const std::string_view op = name.substr(std::string_view(cache.name).size());
    for (const Named& cache_op : kCacheOps)
      if (op == cache_op.name) return PerfCounter{cache.type, cache.config | cache_op.config};
  }
  return Raw(name);
}

bool IsReadable(const PerfCounter& counter) {
  if (counter.type != PERF_TYPE_SOFTWARE) return true;
  switch (counter.config) {
    case PERF_COUNT_SW_CPU_CLOCK:
    case PERF_COUNT_SW_TASK_CLOCK:
    case PERF_COUNT_SW_PAGE_FAULTS:
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
      return true;
    default:
      return false;
  }
}

}  // namespace weft::agent
