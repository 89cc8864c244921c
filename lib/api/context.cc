// SPDX-License-Identifier: Apache-2.0
// The contexts. Source of the names: `lttng add-context --list` of LTTng 2.13, and lttng-ust(3).
#include "lib/api/context.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lib/api/names.h"
#include "lib/api/nearest.h"

namespace weft::api {
namespace {

struct Plain {
  std::string_view name;
  ContextDomains domains;
};
constexpr ContextDomains kUser = {.user = true};
constexpr ContextDomains kKernel = {.kernel = true};
constexpr ContextDomains kBoth = {.user = true, .kernel = true};

// Outside the container's view (pid, uid, ...) only the kernel knows.
constexpr std::array kPlain = std::to_array<Plain>({
    {"callstack-kernel", kKernel},
    {"callstack-user", kKernel},
    {"cgroup_ns", kBoth},
    {"cpu_id", kBoth},
    {"egid", kKernel},
    {"euid", kKernel},
    {"gid", kKernel},
    {"hostname", kKernel},
    {"interruptible", kKernel},
    {"ip", kUser},
    {"ipc_ns", kBoth},
    {"migratable", kKernel},
    {"mnt_ns", kBoth},
    {"need_reschedule", kKernel},
    {"net_ns", kBoth},
    {"nice", kKernel},
    {"pid", kKernel},
    {"pid_ns", kBoth},
    {"ppid", kKernel},
    {"preemptible", kKernel},
    {"prio", kKernel},
    {"procname", kBoth},
    {"pthread_id", kUser},
    {"sgid", kKernel},
    {"suid", kKernel},
    {"tid", kKernel},
    {"time_ns", kBoth},
    {"uid", kKernel},
    {"user_ns", kBoth},
    {"uts_ns", kBoth},
    {"vegid", kBoth},
    {"veuid", kBoth},
    {"vgid", kBoth},
    {"vpid", kBoth},
    {"vppid", kKernel},
    {"vsgid", kBoth},
    {"vsuid", kBoth},
    {"vtid", kBoth},
    {"vuid", kBoth},
});

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
constexpr std::string_view kAppPrefix = "$app.";

// "raw:rHEX:NAME" behind the prefix.
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
  if (name.starts_with(kCpuPrefix)) return kKernel;
  if (name.starts_with(kThreadPrefix) || name.starts_with(kAppPrefix)) return kUser;
  return std::ranges::find(kPlain, name, &Plain::name)->domains;
}

std::string CheckContextName(std::string_view name) {
  if (name.starts_with(kThreadPrefix)) return CheckCounter(name.substr(kThreadPrefix.size()));
  if (name.starts_with(kCpuPrefix)) return CheckCounter(name.substr(kCpuPrefix.size()));
  if (name.starts_with(kAppPrefix)) return CheckApp(name.substr(kAppPrefix.size()));
  if (name.starts_with("$ctx.")) return "is written without $ctx. here";
  std::vector<std::string_view> names;
  for (const Plain& plain : kPlain) {
    if (plain.name == name) return "";
    names.push_back(plain.name);
  }
  if (name.starts_with("perf:"))
    return "perf counters are written perf:thread:COUNTER or, in the kernel, perf:cpu:COUNTER";
  return "unknown context" + DidYouMean(name, names);
}

std::string PlainContextNames(std::string_view separator) {
  std::string out;
  for (const Plain& plain : kPlain) {
    if (!out.empty()) out += separator;
    out += plain.name;
  }
  return out;
}

}  // namespace weft::api
