// SPDX-License-Identifier: Apache-2.0
// Rules about the kernel become events of weft.ko's, as the running kernel describes itself. See
// compile.h.
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "lib/api/nearest.h"
#include "lib/base/open_in_root.h"
#include "lib/control/ruleset.h"
#include "node-agent/agent/session/compile.h"
#include "node-agent/agent/session/event_list.h"
#include "node-agent/kernel/catalogue.h"
#include "node-agent/kernel/kernel_types.h"
#include "node-agent/kernel/probes.h"
#include "node-agent/kernel/statedump.h"
#include "node-agent/kernel/syscalls.h"
#include "node-agent/kernel/tracefs.h"
#include "node-agent/kernel/tracepoint.h"
#include "node-agent/kernel/user_probes.h"

namespace weft::agent {
namespace {

std::unexpected<Error> MeansNothing(const char* what, const std::string& name,
                                    const std::string& or_else) {
  return Fail(ErrorCode::kInvalid,
              std::string(what) + " \"" + name + "\": this kernel has none of that name" + or_else);
}

// Returns `, did you mean "x"?`; "" for patterns, and if no name is near. Other tracers put a
// prefix before some names, which is taken off first.
std::string DidYouMean(std::string_view name, const std::set<std::string>& known) {
  if (control::HasWildcard(std::string(name))) return "";
  const auto suggest = [](std::string_view nearest) {
    return ", did you mean \"" + std::string(nearest) + "\"?";
  };
  const std::string_view whole = name;
  for (const std::string_view prefix : {"compat_", "syscall_", "entry_", "exit_", "__x64_",
                                        "__ia32_", "__arm64_", "sys_", "enter_", "exit_"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  if (known.contains(std::string(name))) return suggest(name);
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const std::string_view nearest = api::Nearest(whole, candidates);
  return nearest.empty() ? "" : suggest(nearest);
}

// Returns the names of all tracepoints and of their events.
std::set<std::string> TracepointNames(const kernel::KernelTypes& types) {
  const kernel::Catalogue& catalogue = kernel::Catalogue::BuiltIn();
  std::set<std::string> names;
  for (const std::string& name : types.Match(catalogue, "*", {})) {
    names.insert(name);
    names.insert(catalogue.EventName(name));
  }
  return names;
}

std::set<std::string> SyscallNames(const kernel::Syscalls& syscalls) {
  std::set<std::string> names;
  for (const kernel::Syscall& call : syscalls.all()) {
    names.insert(call.name);
    names.insert(call.table_name);
  }
  return names;
}

// A name that was not found may be that of a tracepoint in one of these modules.
std::string ButFor(const kernel::KernelTypes& types) {
  std::string but;
  for (const std::string& problem : types.problems()) but += "; " + problem;
  return but;
}

// Names the sources of weft.ko that can replace one that this kernel does not allow.
std::string Others(uint32_t features) {
  std::string others;
  if ((features & WEFT_KERNEL_SYSCALLS) != 0) others += "syscalls, ";
  if ((features & WEFT_KERNEL_KPROBES) != 0) others += "probes, ";
  if ((features & WEFT_KERNEL_UPROBES) != 0) others += "userProbes, ";
  return others + "the statedump";
}

// Said before weft.ko would say it without a reason. A kernel that has tracepoints, but no generic
// probes for them, checks the type of each indirect call.
void CheckFeatures(const api::TraceSpec& spec, const kernel::Btf& btf, uint32_t features,
                   EventList& events) {
  const auto lacks = [features](uint32_t feature) { return (features & feature) == 0; };
  const bool checks_calls = lacks(WEFT_KERNEL_TRACEPOINTS) && !kernel::TracepointNames(btf).empty();
  const std::string why =
      checks_calls ? "this kernel checks the type of indirect calls (kCFI), and would trap where a "
                     "tracepoint calls weft.ko; what works: " +
                         Others(features)
                   : "this kernel was built without them; what works: " + Others(features);
  if (!spec.kernel.tracepoints.empty() && lacks(WEFT_KERNEL_TRACEPOINTS))
    events.Refuse("spec.kernel.tracepoints: " + why);
  if (!spec.kernel.syscalls.empty() && lacks(WEFT_KERNEL_SYSCALLS))
    events.Refuse("spec.kernel.syscalls: " + why);
  if (!spec.kernel.probes.empty() && lacks(WEFT_KERNEL_KPROBES))
    events.Refuse("spec.kernel.probes: this kernel was built without kprobes");
  if (!spec.kernel.user_probes.empty() && lacks(WEFT_KERNEL_UPROBES))
    events.Refuse("spec.kernel.userProbes: this kernel was built without uprobes");
}

Status AddTracepoints(const api::TraceSpec& spec, const kernel::KernelTypes& types,
                      const kernel::ResolveOptions& options, EventList& events) {
  const kernel::Catalogue& catalogue = kernel::Catalogue::BuiltIn();
  std::map<std::string, EventList::Choice> chosen;
  for (const api::KernelRule& rule : spec.kernel.tracepoints) {
    const auto names = types.Match(catalogue, rule.name, rule.exclude);
    if (names.empty())
      return MeansNothing("tracepoint", rule.name,
                          ButFor(types) + DidYouMean(rule.name, TracepointNames(types)));
    WEFT_ASSIGN(EventList::Rule * asked, events.Ask("tracepoint", rule.name, rule.filter));
    for (const std::string& name : names) chosen[name].push_back(asked);
  }
  for (const auto& [name, choice] : chosen)
    WEFT_TRY(events.Add(choice, types.Resolve(catalogue, name, options)));
  return {};
}

Status AddUnknownSyscalls(const kernel::Syscalls& syscalls, uint32_t features,
                          const EventList::Choice& choice, EventList& events) {
  if (choice.empty()) return {};
  if ((features & WEFT_KERNEL_UNKNOWN_SYSCALLS) == 0) {
    events.Refuse(
        "system calls of unknown numbers are not recorded: the weft.ko that is loaded is an "
        "earlier one; load that of this version (rmmod weft)");
    return {};
  }
  WEFT_ASSIGN(std::vector<kernel::Resolved> unknown, syscalls.ResolveUnknown());
  for (kernel::Resolved& event : unknown) WEFT_TRY(events.Add(choice, std::move(event)));
  return {};
}

// Adds system calls in the order of their numbers, entry before exit.
Status AddSyscalls(const api::TraceSpec& spec, const kernel::Btf& btf, uint32_t features,
                   EventList& events) {
  if (spec.kernel.syscalls.empty()) return {};
  const kernel::Tracefs tracefs = kernel::Tracefs::Open();
  WEFT_ASSIGN(const kernel::Syscalls syscalls,
              kernel::Syscalls::Load(btf, kernel::Catalogue::BuiltIn(), tracefs.path(), features));
  if (tracefs.path().empty()) events.Note(tracefs.problem());
  std::map<const kernel::Syscall*, EventList::Choice> chosen;
  EventList::Choice of_unknown;
  for (const api::KernelRule& rule : spec.kernel.syscalls) {
    const auto calls = syscalls.Match(rule.name, rule.exclude);
    if (syscalls.LacksNumberOf(rule.name))
      return Fail(ErrorCode::kInvalid, "system call \"" + rule.name +
                                           "\": this kernel has a function for it, whose number "
                                           "is not in weft's catalogue");
    const bool means_unknown = kernel::Syscalls::MeansUnknown(rule.name, rule.exclude);
    if (calls.empty() && !means_unknown)
      return MeansNothing("system call", rule.name,
                          " or number" + DidYouMean(rule.name, SyscallNames(syscalls)));
    WEFT_ASSIGN(EventList::Rule * asked, events.Ask("system call", rule.name, rule.filter));
    for (const kernel::Syscall* call : calls) chosen[call].push_back(asked);
    if (means_unknown) of_unknown.push_back(asked);
  }
  for (const auto& [call, choice] : chosen) {
    const uint32_t buffer_bytes = spec.kernel.syscall_buffer;
    WEFT_TRY(events.Add(choice, syscalls.ResolveEntry(*call, buffer_bytes)));
    WEFT_TRY(events.Add(choice, syscalls.ResolveExit(*call, buffer_bytes)));
  }
  return AddUnknownSyscalls(syscalls, features, of_unknown, events);
}

Status AddProbes(const api::TraceSpec& spec, const kernel::Btf& btf,
                 const kernel::ResolveOptions& options, EventList& events) {
  if (spec.kernel.probes.empty()) return {};
  const kernel::Catalogue& catalogue = kernel::Catalogue::BuiltIn();
  WEFT_ASSIGN(const kernel::KernelSymbols symbols, kernel::KernelSymbols::Load());
  for (const api::ProbeRule& rule : spec.kernel.probes) {
    WEFT_ASSIGN(EventList::Rule * asked, events.Ask("probe", rule.name, rule.filter));
    const EventList::Choice choice = {asked};
    const bool both = rule.at == api::ProbePoint::kBoth;
    const kernel::ProbePlace entry{.event = both ? rule.name + "_entry" : rule.name,
                                   .function = rule.symbol,
                                   .offset = rule.offset};
    const kernel::ProbePlace exit{.event = both ? rule.name + "_exit" : rule.name,
                                  .function = rule.symbol};
    if (rule.at != api::ProbePoint::kReturn)
      WEFT_TRY(events.Add(choice, kernel::ResolveKprobe(btf, catalogue, symbols, entry, options)));
    if (rule.at != api::ProbePoint::kEntry)
      WEFT_TRY(
          events.Add(choice, kernel::ResolveKretprobe(btf, catalogue, symbols, exit, options)));
  }
  return {};
}

// State of the whole machine is not for tenants, and left out silently.
Status AddStates(const api::TraceSpec& spec, const kernel::Btf& btf,
                 const kernel::ResolveOptions& options, EventList& events) {
  if (!spec.kernel.statedump) return {};
  const kernel::Catalogue& catalogue = kernel::Catalogue::BuiltIn();
  const kernel::Statedump states(btf);
  for (const kernel::StateEntry& entry : catalogue.states()) {
    auto resolved = states.Resolve(catalogue, entry, options);
    if (resolved) {
      events.AddState(std::move(*resolved));
    } else if (resolved.error().code != ErrorCode::kPermission) {
      return std::unexpected(resolved.error());
    }
  }
  return {};
}

// Adds the probes of one rule, whose file was read: its function's entry and return, or all places
// of its USDT probe.
Status AddPlaces(const api::UserProbeRule& rule, const kernel::UserProgram& program,
                 const std::shared_ptr<const UniqueFd>& file, EventList& events) {
  WEFT_ASSIGN(EventList::Rule * asked, events.Ask("probe", rule.name, rule.filter));
  const EventList::Choice choice = {asked};
  const auto named = [&rule]<typename T>(Result<T> resolved) {
    if (!resolved)
      resolved.error().message =
          "probe \"" + rule.name + "\": " + rule.object + ": " + resolved.error().message;
    return resolved;
  };
  if (!rule.usdt.empty()) {
    std::vector<std::string> left_out;
    auto sites = named(kernel::ResolveUsdt(program, rule.name, rule.usdt, &left_out));
    for (const std::string& what : left_out)
      events.Note("probe \"" + rule.name + "\": " + rule.object + ": " + what);
    if (!sites) return events.Add(choice, std::unexpected(sites.error()));
    for (kernel::Resolved& site : *sites) WEFT_TRY(events.Add(choice, std::move(site), file));
    return {};
  }
  const bool both = rule.at == api::ProbePoint::kBoth;
  kernel::UserPlace place{.event = both ? rule.name + "_entry" : rule.name,
                          .function = rule.function,
                          .offset = rule.offset,
                          .arguments = rule.args,
                          .returns = rule.returns};
  if (rule.at != api::ProbePoint::kReturn)
    WEFT_TRY(events.Add(choice, named(kernel::ResolveUprobe(program, place)), file));
  if (both) place.event = rule.name + "_exit";
  if (rule.at != api::ProbePoint::kEntry)
    WEFT_TRY(events.Add(choice, named(kernel::ResolveUretprobe(program, place)), file));
  return {};
}

Result<std::shared_ptr<const UniqueFd>> OpenObject(const api::UserProbeRule& rule,
                                                   const std::string& root) {
  auto opened = OpenInRoot(root, rule.object);
  if (!opened)
    return std::unexpected(
        std::move(opened.error()).Context("probe \"" + rule.name + "\": " + rule.object));
  return std::make_shared<const UniqueFd>(std::move(*opened));
}

Status AddUserProbe(const api::UserProbeRule& rule, const std::shared_ptr<const UniqueFd>& file,
                    EventList& events) {
  auto program = kernel::UserProgram::Read(file->get());
  if (!program)
    return std::unexpected(
        std::move(program.error()).Context("probe \"" + rule.name + "\": " + rule.object));
  return AddPlaces(rule, *program, file, events);
}

Status AddUserProbes(const api::TraceSpec& spec, const std::string& root, EventList& events) {
  for (const api::UserProbeRule& rule : spec.kernel.user_probes) {
    WEFT_ASSIGN(const std::shared_ptr<const UniqueFd> file, OpenObject(rule, root));
    WEFT_TRY(AddUserProbe(rule, file, events));
  }
  return {};
}

}  // namespace

Status CompileKernelEvents(const api::TraceSpec& from, const KernelReach& reach,
                           CompiledChannel& to) {
  WEFT_ASSIGN(const kernel::KernelTypes types, kernel::KernelTypes::Load());
  const bool has_user_addresses = (reach.features & WEFT_KERNEL_USER_ADDRESSES) != 0;
  const kernel::ResolveOptions options{.cluster_wide = reach.cluster_wide,
                                       .has_user_addresses = has_user_addresses,
                                       .addresses = !reach.of_tenant};
  EventList events(from, to, reach.of_tenant);
  const auto has = [&reach](uint32_t feature) { return (reach.features & feature) != 0; };
  CheckFeatures(from, types.kernel(), reach.features, events);
  if (has(WEFT_KERNEL_TRACEPOINTS)) WEFT_TRY(AddTracepoints(from, types, options, events));
  if (has(WEFT_KERNEL_SYSCALLS))
    WEFT_TRY(AddSyscalls(from, types.kernel(), reach.features, events));
  if (has(WEFT_KERNEL_KPROBES)) WEFT_TRY(AddProbes(from, types.kernel(), options, events));
  if (reach.object_root && has(WEFT_KERNEL_UPROBES))
    WEFT_TRY(AddUserProbes(from, *reach.object_root, events));
  WEFT_TRY(events.CheckRules());
  const bool more_will_come =
      !reach.object_root && !from.kernel.user_probes.empty() && has(WEFT_KERNEL_UPROBES);
  if (!more_will_come) WEFT_TRY(events.CheckNotEmpty());
  return AddStates(from, types.kernel(), options, events);
}

std::vector<UserProbes> CompileUserProbes(const api::TraceSpec& from, const std::string& root) {
  std::vector<UserProbes> probes;
  for (const api::UserProbeRule& rule : from.kernel.user_probes) {
    const auto file = OpenObject(rule, root);
    CompiledChannel compiled;
    EventList events(from, compiled, /*of_tenant=*/true);
    Status added = file ? AddUserProbe(rule, *file, events) : std::unexpected(file.error());
    if (added) added = events.CheckRules();
    if (added) added = events.CheckNotEmpty();
    if (!added) compiled.notices = {added.error().message};
    // Containers have files in common.
    for (kernel::Event& event : compiled.kernel_events) event.twin = probes.size() + 1;
    probes.push_back(
        {file.has_value(), std::move(compiled.kernel_events), std::move(compiled.notices)});
  }
  return probes;
}

}  // namespace weft::agent
