// SPDX-License-Identifier: Apache-2.0
// Rules about the kernel become events of weft.ko's, as the running kernel describes itself. See compile.h.
#include <map>

#include "lib/control/ruleset.h"
#include "node-agent/agent/compile.h"
#include "node-agent/kernel/catalogue.h"
#include "node-agent/kernel/resolve.h"
#include "node-agent/kernel/syscalls.h"

namespace weft::agent {
namespace {

constexpr const char* kKernelTypes = "/sys/kernel/btf/vmlinux";
constexpr const char* kTracefs = "/sys/kernel/tracing";

// Several rules may mean one event: it is recorded where one of them says so.
struct Choice {
  std::string filter;  // of the rules, joined
  bool unfiltered = false;
  bool by_name = false;  // not only by a pattern

  void Add(const api::KernelRule& rule) {
    unfiltered |= rule.filter.empty();
    by_name |= !control::HasWildcard(rule.name);
    filter += (filter.empty() ? "(" : " || (") + rule.filter + "\n)";
  }
};

class EventList {
 public:
  EventList(const api::TraceSpec& spec, CompiledChannel& to) : spec_(spec), to_(to) {}

  // Who names an event wants to know why it cannot be had; what a pattern means beside others is left out
  // silently.
  Status Add(const Choice& choice, Result<kernel::Resolved> resolved) {
    if (!resolved) {
      why_ = resolved.error().message;
      if (choice.by_name) to_.notices.push_back(why_);
      return {};
    }
    kernel::Event event{.kind = resolved->kind,
                        .name = resolved->target,
                        .offset = resolved->offset,
                        .number = resolved->number,
                        .table = resolved->table,
                        .subjects = resolved->subjects,
                        .description = std::move(resolved->description),
                        .fetch = std::move(resolved->fetch)};
    WEFT_ASSIGN(event.filter,
                CompileFilters(spec_.filter, choice.unfiltered ? std::string() : choice.filter));
    to_.kernel_events.push_back(std::move(event));
    if (!choice.by_name) return {};
    for (const std::string& field : resolved->left_out)
      to_.notices.push_back("event \"" + resolved->name + "\": without field " + field);
    return {};
  }

  [[nodiscard]] Status Finish() const {
    if (!to_.kernel_events.empty()) return {};
    return Fail(ErrorCode::kUnsupported, why_);
  }

 private:
  const api::TraceSpec& spec_;
  CompiledChannel& to_;
  std::string why_ = "spec.kernel: nothing can be recorded";
};

std::unexpected<Error> MeansNothing(const char* what, const std::string& name) {
  return Fail(ErrorCode::kInvalid,
              std::string(what) + " \"" + name + "\": this kernel has none of that name");
}

Status AddTracepoints(const api::TraceSpec& spec, const kernel::Btf& btf, EventList& events) {
  const kernel::Catalogue& catalogue = kernel::Catalogue::BuiltIn();
  std::map<std::string, Choice> chosen;
  for (const api::KernelRule& rule : spec.kernel.tracepoints) {
    const auto names = kernel::MatchTracepoints(btf, catalogue, rule.name, rule.exclude);
    if (names.empty()) return MeansNothing("tracepoint", rule.name);
    for (const std::string& name : names) chosen[name].Add(rule);
  }
  for (const auto& [name, choice] : chosen)
    WEFT_TRY(events.Add(choice, kernel::ResolveTracepoint(btf, catalogue, name, {})));
  return {};
}

// In the order of their numbers: entry, then exit.
Status AddSyscalls(const api::TraceSpec& spec, const kernel::Btf& btf, EventList& events) {
  if (spec.kernel.syscalls.empty()) return {};
  WEFT_ASSIGN(const kernel::Syscalls syscalls,
              kernel::Syscalls::Load(btf, kernel::Catalogue::BuiltIn(), kTracefs));
  std::map<const kernel::Syscall*, Choice> chosen;
  for (const api::KernelRule& rule : spec.kernel.syscalls) {
    const auto calls = syscalls.Match(rule.name, rule.exclude);
    if (calls.empty()) return MeansNothing("system call", rule.name);
    for (const kernel::Syscall* call : calls) chosen[call].Add(rule);
  }
  for (const auto& [call, choice] : chosen) {
    WEFT_TRY(events.Add(choice, syscalls.ResolveEntry(*call)));
    WEFT_TRY(events.Add(choice, syscalls.ResolveExit(*call)));
  }
  return {};
}

}  // namespace

Status CompileKernelEvents(const api::TraceSpec& from, CompiledChannel& to) {
  WEFT_ASSIGN(const kernel::Btf btf, kernel::Btf::Load(kKernelTypes));
  EventList events(from, to);
  WEFT_TRY(AddTracepoints(from, btf, events));
  WEFT_TRY(AddSyscalls(from, btf, events));
  if (!from.kernel.probes.empty())
    to.notices.emplace_back("spec.kernel.probes is not supported yet: no probe is recorded");
  return events.Finish();
}

}  // namespace weft::agent
