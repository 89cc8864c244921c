// SPDX-License-Identifier: Apache-2.0
// Contexts by their names. The table is lib/abi/context.h; the perf counters' names are those of
// `lttng add-context --list` of LTTng 2.13.
#include "lib/api/context.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/abi/context.h"
#include "lib/api/names.h"
#include "lib/api/nearest.h"

namespace weft::api {
namespace {

// Returns the rows of the table in lib/abi/context.h.
std::span<const weft_context_info> Table() {
  std::uint32_t count = 0;
  const weft_context_info* table = weft_context_table(&count);
  return {table, count};
}

bool HasGivenName(const weft_context_info& info) {
  return info.id == WEFT_CONTEXT_PERF_THREAD || info.id == WEFT_CONTEXT_PERF_CPU ||
         info.id == WEFT_CONTEXT_APP;
}

// Names without a given part that a Trace's list takes, sorted.
std::vector<std::string_view> PlainNames() {
  std::vector<std::string_view> names;
  for (const weft_context_info& info : Table())
    if (!HasGivenName(info) && (info.domains & WEFT_CONTEXT_UNLISTED) == 0)
      names.emplace_back(info.name);
  std::ranges::sort(names);
  return names;
}

constexpr std::array kCounters = std::to_array<std::string_view>({
    "cpu-cycles",
    "cycles",
    "stalled-cycles-frontend",
    "idle-cycles-frontend",
    "stalled-cycles-backend",
    "idle-cycles-backend",
    "instructions",
    "cache-references",
    "cache-misses",
    "branch-instructions",
    "branches",
    "branch-misses",
    "bus-cycles",
    "L1-dcache-loads",
    "L1-dcache-load-misses",
    "L1-dcache-stores",
    "L1-dcache-store-misses",
    "L1-dcache-prefetches",
    "L1-dcache-prefetch-misses",
    "L1-icache-loads",
    "L1-icache-load-misses",
    "L1-icache-stores",
    "L1-icache-store-misses",
    "L1-icache-prefetches",
    "L1-icache-prefetch-misses",
    "LLC-loads",
    "LLC-load-misses",
    "LLC-stores",
    "LLC-store-misses",
    "LLC-prefetches",
    "LLC-prefetch-misses",
    "dTLB-loads",
    "dTLB-load-misses",
    "dTLB-stores",
    "dTLB-store-misses",
    "dTLB-prefetches",
    "dTLB-prefetch-misses",
    "iTLB-loads",
    "iTLB-load-misses",
    "branch-loads",
    "branch-load-misses",
    "cpu-clock",
    "task-clock",
    "page-fault",
    "faults",
    "major-faults",
    "minor-faults",
    "context-switches",
    "cs",
    "cpu-migrations",
    "migrations",
    "alignment-faults",
    "emulation-faults",
});

constexpr std::string_view kThreadPrefix = "perf:thread:";
constexpr std::string_view kCpuPrefix = "perf:cpu:";

// Is the text behind the prefix "raw:rHEX:NAME"?
bool IsRawCounter(std::string_view counter) {
  if (!counter.starts_with("raw:r")) return false;
  counter.remove_prefix(5);
  const std::size_t colon = counter.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 16) return false;
  return counter.find_first_not_of("0123456789abcdefABCDEF") == colon &&
         CheckIdentifier(counter.substr(colon + 1)).empty();
}

std::string CheckCounter(std::string_view counter) {
  if (counter.starts_with("raw:"))
    return IsRawCounter(counter) ? "" : "raw counters are written raw:rHEX:NAME, as raw:r13c:x";
  if (std::ranges::find(kCounters, counter) != kCounters.end()) return "";
  return "unknown perf counter" + DidYouMean(counter, kCounters);
}

std::string CheckApp(std::string_view rest) {
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos && CheckIdentifier(rest.substr(0, colon)).empty() &&
      CheckIdentifier(rest.substr(colon + 1)).empty())
    return "";
  return "application contexts are written $app.PROVIDER:NAME";
}

}  // namespace

ContextDomains LookUpContext(std::string_view name) {
  if (!CheckContextName(name).empty()) return {};
  for (const weft_context_info& info : Table()) {
    const bool matches = HasGivenName(info) ? name.starts_with(info.name) : name == info.name;
    if (matches)
      return {.user = (info.domains & WEFT_CONTEXT_IN_USER) != 0,
              .kernel = (info.domains & WEFT_CONTEXT_IN_KERNEL) != 0};
  }
  return {};
}

std::string CheckContextName(std::string_view name) {
  if (name.starts_with(kThreadPrefix)) return CheckCounter(name.substr(kThreadPrefix.size()));
  if (name.starts_with(kCpuPrefix)) return CheckCounter(name.substr(kCpuPrefix.size()));
  if (name.starts_with(kAppPrefix)) return CheckApp(name.substr(kAppPrefix.size()));
  if (name.starts_with("$ctx.")) return "is written without $ctx. here";
  const std::vector<std::string_view> names = PlainNames();
  if (std::ranges::find(names, name) != names.end()) return "";
  if (name.starts_with("perf:"))
    return "perf counters are written perf:thread:COUNTER or, in the kernel, perf:cpu:COUNTER";
  return "unknown context" + DidYouMean(name, names);
}

std::string PlainContextNames(std::string_view separator) {
  std::string out;
  for (const std::string_view name : PlainNames()) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

}  // namespace weft::api
